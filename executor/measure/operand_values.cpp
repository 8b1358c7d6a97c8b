#include "executor/measure/operand_values.h"

#include <algorithm>
#include <span>

#include "kernels/counter_random.h"
#include "kernels/cpu/half.h"

namespace plumb { inline namespace executor {

std::vector<std::byte> operand_values(std::optional<HalfFormat> half, std::int64_t bytes) {
  std::vector<float> values(static_cast<std::size_t>(bytes / (half ? 2 : 4)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(mix_bits(i) >> 40U) / 8388608.0F - 1.0F;
  std::vector<std::byte> stored(static_cast<std::size_t>(bytes));
  if (half) {
    std::vector<std::uint16_t> narrowed(values.size());
    narrow(narrowed.data(), values.data(), static_cast<std::int64_t>(values.size()), *half);
    std::ranges::copy(std::as_bytes(std::span(narrowed)), stored.begin());
  } else {
    std::ranges::copy(std::as_bytes(std::span(values)), stored.begin());
  }
  return stored;
}

}}  // namespace plumb::executor
