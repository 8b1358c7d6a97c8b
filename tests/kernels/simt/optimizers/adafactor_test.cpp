#include "kernels/simt/optimizers/adafactor.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kernels/cpu/optimizers/adafactor.h"
#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

constexpr std::int64_t kPieces = 5;
constexpr Adafactor kAdafactor{.learning_rate = 0.05F, .weight_decay = 0.1F};

StepNumbers numbers_of(int step, float factor) {
  return {.gradient_factor = factor,
          .fresh_share = static_cast<float>(std::pow(step, -double(kAdafactor.decay_exponent)))};
}

/// Matrices, or without rows a vector of `columns` elements, that are updated on a GPU.
struct OnGpu {
  MatrixStackSize size;
  Values master, row_sums, column_sums;
  std::vector<Bf16> narrow = std::vector<Bf16>(master.size());
  std::vector<simt::AdafactorSquares> squares =
      std::vector<simt::AdafactorSquares>(static_cast<std::size_t>(size.matrices * kPieces));

  void update(Values& gradients, const StepNumbers& numbers, int lanes = kLanes) {
    const float epsilon = kAdafactor.gradient_epsilon;
    const bool is_vector = size.rows == 0;
    if (is_vector) {
      run_on_host(simt::AdafactorVectorDirection{gradients.data(), squares.data(), master.data(), row_sums.data(),
                                                 size.columns, kPieces, epsilon, &numbers},
                  kBlocks, lanes);
    } else {
      run_on_host(simt::AdafactorRows{row_sums.data(), gradients.data(), size, epsilon, &numbers}, kBlocks, lanes);
      run_on_host(simt::AdafactorColumns{column_sums.data(), gradients.data(), size, epsilon, &numbers}, kBlocks,
                  lanes);
      run_on_host(simt::AdafactorMatrixDirection{gradients.data(), squares.data(), master.data(), row_sums.data(),
                                                 column_sums.data(), size, kPieces, &numbers},
                  kBlocks, lanes);
    }
    run_on_host(
        simt::AdafactorStep<Bf16>{narrow.data(), master.data(), gradients.data(), squares.data(), size.matrices,
                                  std::max<std::int64_t>(1, size.rows) * size.columns, kPieces, kAdafactor, &numbers},
        kBlocks, lanes);
  }
};

}  // namespace

TEST_CASE("GPU Adafactor of stacks of matrices keeps the CPU's weights and sums over several steps") {
  for (const MatrixStackSize& size : {MatrixStackSize{3, 13, 37}, {1, 1, 9}, {2, 29, 1}, {1, 70, 131}}) {
    INFO(size.matrices << " of " << size.rows << " x " << size.columns);
    const std::int64_t each = size.rows * size.columns, elements = size.matrices * each;
    Values weights = random_values(elements, 1), rows(static_cast<std::size_t>(size.matrices * size.rows)),
           columns(static_cast<std::size_t>(size.matrices * size.columns));
    OnGpu gpu{.size = size, .master = weights, .row_sums = rows, .column_sums = columns};
    for (int step = 1; step <= 3; ++step) {
      Values gradients = random_values(elements, 10U + static_cast<unsigned>(step));
      for (std::int64_t c = 0; c < size.columns && size.rows > 2; ++c)
        gradients[static_cast<std::size_t>(2 * size.columns + c)] = 0;  // a token that does not occur
      Values own = gradients;
      for (std::int64_t m = 0; m < size.matrices; ++m)
        adafactor_update_matrix(weights.data() + m * each, gradients.data() + m * each, rows.data() + m * size.rows,
                                columns.data() + m * size.columns, size.rows, size.columns, kAdafactor, step);
      for (float& gradient : own) gradient *= 8;
      gpu.update(own, numbers_of(step, 0.125F));
      CHECK(relative_difference(gpu.master, weights) < 1e-5);
      CHECK(relative_difference(gpu.row_sums, rows) < 1e-5);
      CHECK(relative_difference(gpu.column_sums, columns) < 1e-5);
      CHECK(own == Values(static_cast<std::size_t>(elements), 0.0F));
      CHECK(widened_all(gpu.narrow) == widened_all(stored<Bf16>(gpu.master)));
    }
  }
}

TEST_CASE("GPU Adafactor of a vector keeps the CPU's weights and second moment") {
  constexpr std::int64_t kElements = 1003;
  Values weights = random_values(kElements, 1), moment(kElements);
  OnGpu gpu{.size = {1, 0, kElements}, .master = weights, .row_sums = moment, .column_sums = {}};
  for (int step = 1; step <= 3; ++step) {
    Values gradients = random_values(kElements, 20U + static_cast<unsigned>(step)), own = gradients;
    adafactor_update_vector(weights.data(), gradients.data(), moment.data(), kElements, kAdafactor, step);
    gpu.update(own, numbers_of(step, 1));
    CHECK(relative_difference(gpu.master, weights) < 1e-5);
    CHECK(relative_difference(gpu.row_sums, moment) < 1e-5);
    CHECK(own == Values(kElements, 0.0F));
  }
}

TEST_CASE("a step that is skipped leaves GPU Adafactor's weights and sums, and zeroes gradients that are no numbers") {
  for (const MatrixStackSize& size : {MatrixStackSize{1, 7, 11}, {1, 0, 77}}) {
    OnGpu gpu{.size = size,
              .master = random_values(77, 1),
              .row_sums = random_values(77, 2),
              .column_sums = random_values(11, 3)};
    const Values master = gpu.master, rows = gpu.row_sums, columns = gpu.column_sums;
    Values gradients(77, NAN);
    StepNumbers numbers = numbers_of(2, 0);
    numbers.skips = 1;
    gpu.update(gradients, numbers);
    CHECK(gpu.master == master);
    CHECK(gpu.row_sums == rows);
    CHECK(gpu.column_sums == columns);
    CHECK(gradients == Values(77, 0.0F));
  }
}

TEST_CASE("GPU Adafactor: rows and columns of no gradient at all give no direction, and no number that is none") {
  constexpr MatrixStackSize kSize{1, 4, 6};
  OnGpu gpu{.size = kSize, .master = random_values(24, 1), .row_sums = Values(4), .column_sums = Values(6)};
  Values gradients(24, 0.0F);
  gradients[0] = 1e4F;  // one row and one column; all others have only the epsilon
  gpu.update(gradients, numbers_of(1, 1), 1);
  for (const float weight : gpu.master) CHECK(std::isfinite(weight));
}

}  // namespace plumb::test
