#pragma once
// A number that is all of a text.

#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace plumb { inline namespace schedules {

/// Returns the number that all of `text` is: whole_number<int>("17") is 17; of "17x", of "" and of what does not fit
/// there is none. Neither infinity nor "nan" is a number.
template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::floating_point<Number>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

}}  // namespace plumb::schedules
