#include "executor/word_sum.h"

#include <bit>

#include <fmt/format.h>

namespace plumb {

std::uint64_t word_sum(std::span<const float> values) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    sum += static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(values[i])) * (2 * i + 1);
  return sum;
}

std::string changed_text(const std::string& message, std::size_t values) {
  return fmt::format("{}: its {} values are not those that were sent: they were changed on their way", message, values);
}

}  // namespace plumb
