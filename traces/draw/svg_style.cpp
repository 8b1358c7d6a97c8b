#include "traces/draw/svg_style.h"

#include <algorithm>

namespace plumb { inline namespace traces {

std::string_view color_of(Op op) {
  const auto found = std::ranges::find(kOpColors, op, &OpColor::op);
  return found == kOpColors.end() ? "#9a9a9a" : found->color;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}}  // namespace plumb::traces
