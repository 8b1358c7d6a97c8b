#include "kernels/cpu/optimizers/adafactor.h"

#include <algorithm>
#include <cmath>

namespace plumb { inline namespace kernels {
namespace {

double decay_at(const Adafactor& optimizer, std::int64_t step) {
  return 1.0 - std::pow(static_cast<double>(step), -static_cast<double>(optimizer.decay_exponent));
}

double square(float value) {
  return static_cast<double>(value) * static_cast<double>(value);
}

double root_mean_square(const float* values, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += square(values[i]);
  return std::sqrt(sum / static_cast<double>(count));
}

/// Moves the parameters against the updates u, which have taken the gradients' place, and zeroes the gradients.
void apply(float* parameters, float* updates, std::int64_t count, const Adafactor& optimizer) {
  const double clip =
      std::max(1.0, root_mean_square(updates, count) / static_cast<double>(optimizer.clipping_threshold));
  const double scale = std::max(static_cast<double>(optimizer.parameter_epsilon), root_mean_square(parameters, count));
  const auto step = static_cast<float>(static_cast<double>(optimizer.learning_rate) * scale / clip);
  const float decay = optimizer.learning_rate * optimizer.weight_decay;
  for (std::int64_t i = 0; i < count; ++i) {
    parameters[i] -= step * updates[i] + decay * parameters[i];
    updates[i] = 0.0F;
  }
}

}  // namespace

void adafactor_update_matrix(float* parameters, float* gradients, float* row_sums, float* column_sums,
                             std::int64_t rows, std::int64_t columns, const Adafactor& optimizer, std::int64_t step) {
  const double decay = decay_at(optimizer, step);
  const auto kept = static_cast<float>(decay), fresh = static_cast<float>(1.0 - decay);
  const auto epsilon = static_cast<double>(optimizer.gradient_epsilon);
  double total = 0;
  for (std::int64_t c = 0; c < columns; ++c) column_sums[c] *= kept;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = gradients + r * columns;
    double sum = 0;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double term = square(row[c]) + epsilon;
      sum += term;
      column_sums[c] += fresh * static_cast<float>(term);
    }
    row_sums[r] = kept * row_sums[r] + fresh * static_cast<float>(sum);
    total += static_cast<double>(row_sums[r]);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const double row_share = static_cast<double>(row_sums[r]) / total;
    float* row = gradients + r * columns;
    for (std::int64_t c = 0; c < columns; ++c)
      row[c] =
          static_cast<float>(static_cast<double>(row[c]) / std::sqrt(row_share * static_cast<double>(column_sums[c])));
  }
  apply(parameters, gradients, rows * columns, optimizer);
}

void adafactor_update_vector(float* parameters, float* gradients, float* second_moment, std::int64_t elements,
                             const Adafactor& optimizer, std::int64_t step) {
  const double decay = decay_at(optimizer, step);
  const auto kept = static_cast<float>(decay), fresh = static_cast<float>(1.0 - decay);
  for (std::int64_t i = 0; i < elements; ++i) {
    const float g = gradients[i];
    second_moment[i] = kept * second_moment[i] + fresh * (g * g + optimizer.gradient_epsilon);
    gradients[i] = g / std::sqrt(second_moment[i]);
  }
  apply(parameters, gradients, elements, optimizer);
}

}}  // namespace plumb::kernels
