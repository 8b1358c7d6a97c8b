#pragma once
// What measured kernels compute on: on zeros a GPU draws less power, and runs faster than it ever will in a training.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/half_format.h"

namespace plumb { inline namespace executor {

/// So many bytes, a multiple of 4, of numbers between -1 and 1, the same each time: in 16 bits, or in fp32.
std::vector<std::byte> operand_values(std::optional<HalfFormat> half, std::int64_t bytes);

}}  // namespace plumb::executor
