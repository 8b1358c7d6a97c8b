#pragma once
// Adafactor on a GPU (kernels/cpu/optimizers/adafactor.h has the formula), with fp32 master weights. One update runs
// several bodies in turn: AdafactorRows, AdafactorColumns and AdafactorMatrixDirection for matrices,
// AdafactorVectorDirection for a vector; then AdafactorStep. The direction takes the gradient's place, and every piece
// of it leaves sums of squares, from which the step computes the root mean squares that it needs. In a step that is
// skipped (kernels/step_numbers.h) all bodies leave everything as it is, and the last one zeroes the gradients.

#include "kernels/optimizer.h"
#include "kernels/simt/column_sum.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"
#include "kernels/step_numbers.h"

namespace plumb { inline namespace kernels {

/// Matrices one behind the other, each with sums of its own. A parameter of two dimensions is one matrix.
struct MatrixStackSize {
  std::int64_t matrices = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

namespace simt {

/// row_sums[r] = kept row_sums[r] + fresh sum over c of (g^2 + epsilon). gradients: [matrices, rows, columns];
/// row_sums: [matrices, rows]
struct AdafactorRows {
  float* row_sums;
  const float* gradients;
  MatrixStackSize size;
  float epsilon;
  const StepNumbers* numbers;  ///< one element

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const StepNumbers of_step = *numbers;
    if (of_step.skips != 0) return;
    for (std::int64_t row = thread.block(); row < size.matrices * size.rows; row += thread.blocks()) {
      const float* own = gradients + row * size.columns;
      const float sum = sum_over_row(thread, size.columns, [&](std::int64_t c) {
        const float g = of_step.gradient_factor * own[c];
        return g * g + epsilon;
      });
      if (thread.lane() == 0) row_sums[row] = (1.0F - of_step.fresh_share) * row_sums[row] + of_step.fresh_share * sum;
    }
  }
};

/// Updates the sums by column as AdafactorRows does those by row. column_sums: [matrices, columns]
struct AdafactorColumns {
  float* column_sums;
  const float* gradients;
  MatrixStackSize size;
  float epsilon;
  const StepNumbers* numbers;  ///< one element

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const StepNumbers of_step = *numbers;
    if (of_step.skips != 0) return;
    for_each_column_sum(
        thread, size.rows, size.matrices * size.columns,
        [&](std::int64_t row, std::int64_t c) {
          const std::int64_t matrix = c / size.columns;
          const float g = of_step.gradient_factor *
                          gradients[(matrix * size.rows + row) * size.columns + (c - matrix * size.columns)];
          return g * g + epsilon;
        },
        [&](std::int64_t c, float sum) {
          column_sums[c] = (1.0F - of_step.fresh_share) * column_sums[c] + of_step.fresh_share * sum;
        });
  }
};

/// The sums of squares that a piece of a matrix leaves.
struct AdafactorSquares {
  float of_direction;
  float of_weights;
};

/// gradients[r,c] = g sqrt(sum(row_sums)) / sqrt(row_sums[r]) / sqrt(column_sums[c]). The roots are taken apart, since
/// in fp32 the product of two small sums may be 0. A piece is some of a matrix's rows, and one block takes it. squares:
/// [matrices, pieces]
struct AdafactorMatrixDirection {
  float* gradients;
  AdafactorSquares* squares;
  const float* master;
  const float* row_sums;
  const float* column_sums;
  MatrixStackSize size;
  std::int64_t pieces;
  const StepNumbers* numbers;  ///< one element

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const StepNumbers of_step = *numbers;
    if (of_step.skips != 0) return;
    const std::int64_t each = (size.rows + pieces - 1) / pieces;
    for (std::int64_t item = thread.block(); item < size.matrices * pieces; item += thread.blocks()) {
      const std::int64_t matrix = item / pieces, first = item % pieces * each;
      const std::int64_t end = first + each < size.rows ? first + each : size.rows;
      const float* rows = row_sums + matrix * size.rows;
      const float* columns = column_sums + matrix * size.columns;
      const float root = sqrtf(sum_over_row(thread, size.rows, [&](std::int64_t r) { return rows[r]; }));
      AdafactorSquares own{0, 0};
      for (std::int64_t row = first; row < end; ++row) {
        const float scale = root / sqrtf(rows[row]);
        const std::int64_t begin = (matrix * size.rows + row) * size.columns;
        for (std::int64_t c = thread.lane(); c < size.columns; c += thread.lanes()) {
          const float weight = master[begin + c];
          const float direction = of_step.gradient_factor * gradients[begin + c] / sqrtf(columns[c]) * scale;
          gradients[begin + c] = direction;
          own.of_direction += direction * direction;
          own.of_weights += weight * weight;
        }
      }
      own.of_direction = combine_over_block(thread, own.of_direction, Add{});
      own.of_weights = combine_over_block(thread, own.of_weights, Add{});
      if (thread.lane() == 0) squares[item] = own;
    }
  }
};

/// second_moment = kept second_moment + fresh (g^2 + epsilon), gradients = g / sqrt(second_moment). A piece is a
/// stretch of the elements. gradients, master, second_moment: [elements]; squares: [pieces]
struct AdafactorVectorDirection {
  float* gradients;
  AdafactorSquares* squares;
  const float* master;
  float* second_moment;
  std::int64_t elements;
  std::int64_t pieces;
  float epsilon;
  const StepNumbers* numbers;  ///< one element

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const StepNumbers of_step = *numbers;
    if (of_step.skips != 0) return;
    const std::int64_t each = (elements + pieces - 1) / pieces;
    for (std::int64_t piece = thread.block(); piece < pieces; piece += thread.blocks()) {
      const std::int64_t first = piece * each, end = first + each < elements ? first + each : elements;
      AdafactorSquares own{0, 0};
      for (std::int64_t i = first + thread.lane(); i < end; i += thread.lanes()) {
        const float g = of_step.gradient_factor * gradients[i];
        const float moment = (1.0F - of_step.fresh_share) * second_moment[i] + of_step.fresh_share * (g * g + epsilon);
        const float direction = g / sqrtf(moment);
        second_moment[i] = moment;
        gradients[i] = direction;
        own.of_direction += direction * direction;
        own.of_weights += master[i] * master[i];
      }
      own.of_direction = combine_over_block(thread, own.of_direction, Add{});
      own.of_weights = combine_over_block(thread, own.of_weights, Add{});
      if (thread.lane() == 0) squares[piece] = own;
    }
  }
};

/// Moves the master weights against the directions that stand in the gradients' place, writes the weights that compute,
/// and zeroes the gradients. weights (may be master itself), master, gradients: [matrices, elements]; squares:
/// [matrices, pieces]
template <class S>
struct AdafactorStep {
  S* weights;
  float* master;
  float* gradients;
  const AdafactorSquares* squares;
  std::int64_t matrices;
  std::int64_t elements;  ///< elements of one matrix
  std::int64_t pieces;
  Adafactor optimizer;
  const StepNumbers* numbers;  ///< one element

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const bool skips = numbers->skips != 0;
    const std::int64_t each = (elements + pieces - 1) / pieces;
    const float decay = optimizer.learning_rate * optimizer.weight_decay;
    for (std::int64_t item = thread.block(); item < matrices * pieces; item += thread.blocks()) {
      const std::int64_t matrix = item / pieces, first = item % pieces * each;
      const std::int64_t end = first + each < elements ? first + each : elements;
      const float step = skips ? 0.0F : step_of(thread, squares + matrix * pieces);
      for (std::int64_t k = first + thread.lane(); k < end; k += thread.lanes()) {
        const std::int64_t i = matrix * elements + k;
        if (!skips) {
          const float updated = master[i] - (step * gradients[i] + decay * master[i]);
          master[i] = updated;
          store(weights[i], updated);
        }
        gradients[i] = 0.0F;
      }
    }
  }

 private:
  template <class Thread>
  PLUMB_SIMT float step_of(const Thread& thread, const AdafactorSquares* own) const {
    const auto count = static_cast<float>(elements);
    const float direction =
        sqrtf(sum_over_row(thread, pieces, [&](std::int64_t p) { return own[p].of_direction; }) / count);
    const float weights =
        sqrtf(sum_over_row(thread, pieces, [&](std::int64_t p) { return own[p].of_weights; }) / count);
    const float clip = Larger{}(1.0F, direction / optimizer.clipping_threshold);
    return optimizer.learning_rate * Larger{}(optimizer.parameter_epsilon, weights) / clip;
  }
};

}  // namespace simt
}}  // namespace plumb::kernels
