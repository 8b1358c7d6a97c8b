#pragma once
// The squared error of rows of numbers on a GPU, loss and gradient in one pass in place
// (kernels/cpu/losses/squared_error.h).

#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// losses[r] = mean((y - target)^2) of a row; y := gradient_scale * loss_scale * the gradient of their sum. A null loss
/// scale counts as 1. One block computes a row. y: [rows, columns]; targets: [rows, columns], fp32; losses: [rows]
template <class S>
struct SquaredError {
  float* losses;
  S* y;
  const float* targets;
  std::int64_t rows;
  std::int64_t columns;
  float gradient_scale;
  const float* loss_scale = nullptr;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const auto width = static_cast<float>(columns);
    const float scale = 2.0F * (loss_scale == nullptr ? gradient_scale : gradient_scale * *loss_scale) / width;
    for (std::int64_t row = thread.block(); row < rows; row += thread.blocks()) {
      S* own = y + row * columns;
      const float* target = targets + row * columns;
      const float sum = sum_over_row(thread, columns, [&](std::int64_t c) {
        const float error = widened(own[c]) - target[c];
        return error * error;
      });
      if (thread.lane() == 0) losses[row] = sum / width;
      for (std::int64_t c = thread.lane(); c < columns; c += thread.lanes())
        store(own[c], scale * (widened(own[c]) - target[c]));
    }
  }
};

}}}  // namespace plumb::kernels::simt
