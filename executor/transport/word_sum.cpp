#include "executor/transport/word_sum.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace plumb { inline namespace executor {

namespace {

/// Two words that are added at once on every processor that GCC and Clang build for.
using Pair = std::uint64_t __attribute__((vector_size(16)));
constexpr std::size_t kPairs = 4;  // sums that do not wait for each other, named so that they stay in registers
constexpr std::size_t kLanes = 2 * kPairs;

std::uint64_t factor_of(std::size_t lane) {
  return 2 * lane + 1;
}

}  // namespace

std::uint64_t word_sum(std::span<const float> values) {
  const std::size_t words = values.size() / 2, rows = words / kLanes;
  Pair a{}, b{}, c{}, d{}, a_sums{}, b_sums{}, c_sums{}, d_sums{};
  const float* row = values.data();
  for (std::size_t i = 0; i < rows; ++i, row += 2 * kLanes) {
    Pair one, two, three, four;
    std::memcpy(&one, row, sizeof one);
    std::memcpy(&two, row + 4, sizeof two);
    std::memcpy(&three, row + 8, sizeof three);
    std::memcpy(&four, row + 12, sizeof four);
    a_sums += (a += one);
    b_sums += (b += two);
    c_sums += (c += three);
    d_sums += (d += four);
  }
  const Pair sums[kPairs] = {a, b, c, d}, sums_of_sums[kPairs] = {a_sums, b_sums, c_sums, d_sums};
  std::uint64_t sum = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    sum += factor_of(lane) * (sums[lane / 2][lane % 2] + 2 * sums_of_sums[lane / 2][lane % 2]);
  for (std::size_t i = rows * kLanes; i < words; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, values.data() + 2 * i, sizeof bits);
    sum += factor_of(i) * bits;
  }
  if (values.size() % 2 != 0) sum += std::bit_cast<std::uint32_t>(values.back()) * factor_of(words);
  return sum;
}

std::string changed_text(const std::string& message, std::size_t values) {
  return fmt::format("{}: its {} values are not those that were sent: they were changed on their way", message, values);
}

}}  // namespace plumb::executor
