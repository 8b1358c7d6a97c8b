#pragma once
// Reads a number that must be all of a text.

#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace plumb { inline namespace schedules {

/// Returns the number that all of `text` is, or nothing: whole_number<int>("17") is 17, and "17x", "" and numbers that
/// do not fit give nothing. Neither infinity nor "nan" is a number.
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
