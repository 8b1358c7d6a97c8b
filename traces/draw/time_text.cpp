#include "traces/draw/time_text.h"

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace plumb { inline namespace traces {

std::string time_text(SimTime time) {
  constexpr std::array<std::pair<double, std::string_view>, 5> kUnits = {
      {{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}, {1e3, "ns"}, {1, "ps"}}};
  constexpr double kFiveDigits = 1e5;
  const auto picoseconds = static_cast<double>(time.count());
  for (const auto& [unit, name] : kUnits) {
    const double value = picoseconds / unit;
    if (std::abs(value) >= kFiveDigits) return fmt::format("{:.0f} {}", value, name);
    if (std::abs(value) >= 1) return fmt::format("{:.5g} {}", value, name);
  }
  return "0 s";
}

}}  // namespace plumb::traces
