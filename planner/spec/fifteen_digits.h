#pragma once
// Numbers that are converted from SI units to a file's.

#include <cstdlib>

#include <fmt/format.h>

namespace plumb { inline namespace planner {

/// Returns the number rounded to its first 15 digits, which survive the conversion to SI units and back unchanged.
inline double fifteen_digits(double exact) {
  return std::strtod(fmt::format("{:.15g}", exact).c_str(), nullptr);
}

}}  // namespace plumb::planner
