#pragma once
// Dropout on a GPU, with the mask that the CPU draws (kernels/cpu/dropout.h), and the residual addition behind it.

#include "kernels/cpu/dropout.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb::simt {

/// y = residual + (x / (1 - probability) where an element stays, 0 where it is dropped); a null residual counts as
/// zeros. x, y, residual: [count * tokens, columns]
template <class S>
struct Dropout {
  S* y;
  const S* x;
  const S* residual;
  DropoutKey key;
  DropoutRows rows;
  float probability;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const float scale = 1.0F / (1.0F - probability);
    for_each_element(thread, rows.count * rows.tokens * rows.columns, [&](std::int64_t i) {
      const std::int64_t row = i / rows.columns;
      const auto bits = dropout_bits(static_cast<std::uint64_t>(rows.first_sample + row / rows.tokens),
                                     static_cast<std::uint64_t>(rows.first_token + row % rows.tokens),
                                     static_cast<std::uint64_t>(rows.first_column + i % rows.columns));
      const float kept = drops(bits, probability) ? 0.0F : widened(x[i]) * scale;
      store(y[i], kept + (residual == nullptr ? 0.0F : widened(residual[i])));
    });
  }

 private:
  PLUMB_SIMT std::uint64_t dropout_bits(std::uint64_t sample, std::uint64_t token, std::uint64_t column) const {
    return counter_random({kDropoutStream, key.seed, key.step, key.layer, key.place, sample, token, column});
  }
};

}  // namespace plumb::simt
