#include "executor/word_sum.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace plumb {

std::uint64_t word_sum(std::span<const float> values) {
  constexpr std::size_t kLanes = 4;  // sums that do not wait for each other
  const std::size_t words = values.size() / 2;
  std::uint64_t sums[kLanes] = {};
  const auto word = [&](std::size_t i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, values.data() + 2 * i, sizeof bits);
    return bits * (2 * i + 1);
  };
  std::size_t i = 0;
  for (; i + kLanes <= words; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += word(i + lane);
  for (; i < words; ++i) sums[0] += word(i);
  if (values.size() % 2 != 0) sums[0] += std::bit_cast<std::uint32_t>(values.back()) * (2 * words + 1);
  return sums[0] + sums[1] + sums[2] + sums[3];
}

std::string changed_text(const std::string& message, std::size_t values) {
  return fmt::format("{}: its {} values are not those that were sent: they were changed on their way", message, values);
}

}  // namespace plumb
