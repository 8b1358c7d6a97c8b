#include "schedules/spelling.h"

#include <algorithm>
#include <cctype>

namespace plumb { inline namespace schedules {

std::string letters_and_digits(std::string_view text) {
  std::string result;
  for (const unsigned char c : text) {
    if (c < 0x80 && std::isalnum(c) != 0) result += static_cast<char>(std::tolower(c));
  }
  return result;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

std::string_view meaning(std::span<const Spelling> spellings, std::string_view text) {
  const auto it = std::ranges::find(spellings, text, &Spelling::text);
  return it == spellings.end() ? std::string_view{} : it->means;
}

}}  // namespace plumb::schedules
