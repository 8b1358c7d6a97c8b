#include "tools/io/utf8.h"

#include <algorithm>

#include <boost/locale/utf.hpp>

namespace plumb { inline namespace tools {
namespace {

using Utf8 = boost::locale::utf::utf_traits<char>;
using boost::locale::utf::code_point;

/// Returns the next character and moves `at` behind it; returns `illegal` if the bytes are no character.
code_point next_character(const char*& at, const char* end) {
  const code_point character = Utf8::decode(at, end);
  return character == boost::locale::utf::incomplete ? boost::locale::utf::illegal : character;
}

bool is_control(code_point c) {
  return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7f && c < 0xa0);
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) {
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    const char* const start = at;
    if (next_character(at, end) == boost::locale::utf::illegal) return static_cast<std::size_t>(start - text.data());
  }
  return std::string_view::npos;
}

std::string printable(std::string_view text) {
  const char* const end = text.data() + text.size();
  std::string result;
  for (const char* at = text.data(); at != end;) {
    const char* const start = at;
    const code_point character = next_character(at, end);
    if (character == boost::locale::utf::illegal) {
      result += '?';
      at = start + 1;
    } else if (is_control(character)) {
      result += '?';
    } else {
      result.append(start, at);
    }
  }
  return result;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}}  // namespace plumb::tools
