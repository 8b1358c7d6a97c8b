#pragma once
// The numbers on which measured kernels compute. On zeros a GPU would draw less power, and run faster than in a
// training.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/half_format.h"

namespace plumb { inline namespace executor {

/// Returns `bytes` bytes, a multiple of 4, of numbers between -1 and 1 in 16 bits or in fp32. They are the same each
/// time.
std::vector<std::byte> operand_values(std::optional<HalfFormat> half, std::int64_t bytes);

}}  // namespace plumb::executor
