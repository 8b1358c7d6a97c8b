#pragma once
// The tensors that the backward of a block's attention reads and writes on a device.

#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

/// S tokens are on this rank of each of b sequences. The forward leaves qkv (attention_operands.h).
struct AttentionGradients {
  std::byte* dqkv;           ///< [b*S, (a+2k)*d], written
  float* products;           ///< [b, a, S], scratch
  const std::byte* doutput;  ///< [b*S, a*d]
  const std::byte* output;   ///< [b*S, a*d]
  const float* log_sum_exp;  ///< [b, a, S]

  explicit AttentionGradients(const StepCall& of)
      : dqkv(of.written(0)),
        products(of.floats_written(1)),
        doutput(of.read(1)),
        output(of.read(2)),
        log_sum_exp(of.floats_read(3)) {}
};

}}  // namespace plumb::executor
