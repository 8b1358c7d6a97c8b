#include "traces/draw/svg_style.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace plumb { inline namespace traces {

std::string_view color_of(Op op) {
  const auto found = std::ranges::find(kOpColors, op, &OpColor::op);
  if (found != kOpColors.end()) return found->color;
  return is_collective(op) ? "#b07aa1" : "#9a9a9a";
}

std::string_view ink_on(std::string_view color) {
  constexpr std::array<double, 3> kWeights{0.2126, 0.7152, 0.0722};
  constexpr double kWhite = 1, kNearlyBlack = 0.0056;  // luminances
  double luminance = 0;
  for (std::size_t i = 0; i < kWeights.size(); ++i) {
    const double part = std::stoi(std::string(color.substr(1 + 2 * i, 2)), nullptr, 16) / 255.0;
    luminance += kWeights[i] * (part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4));
  }
  const double to_white = (kWhite + 0.05) / (luminance + 0.05), to_black = (luminance + 0.05) / (kNearlyBlack + 0.05);
  return to_white > to_black ? "#ffffff" : "#111111";
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
