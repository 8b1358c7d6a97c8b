#pragma once
// Numbers on their way from SI units to a file's.

#include <cstdlib>

#include <fmt/format.h>

namespace plumb { inline namespace planner {

/// Returns what the number's first 15 digits say: they survive the way to SI units and back unchanged.
inline double fifteen_digits(double exact) {
  return std::strtod(fmt::format("{:.15g}", exact).c_str(), nullptr);
}

}}  // namespace plumb::planner
