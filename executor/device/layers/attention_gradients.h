#pragma once
// The tensors that the backward of a block's attention reads and writes on a device.

#include <cstddef>

namespace plumb { inline namespace executor {

/// S tokens are on this rank of each of b sequences.
struct AttentionGradients {
  std::byte* dqkv = nullptr;           ///< [b*S, (a+2k)*d], written
  float* products = nullptr;           ///< [b, a, S], scratch
  const std::byte* doutput = nullptr;  ///< [b*S, a*d]
  const std::byte* qkv = nullptr;      ///< the forward leaves it
  const std::byte* output = nullptr;   ///< [b*S, a*d]
  const float* log_sum_exp = nullptr;  ///< [b, a, S]
};

}}  // namespace plumb::executor
