#include "kernels/cpu/optimizers/adamw.h"

#include <cmath>

namespace plumb { inline namespace kernels {

void adamw_update(float* parameters, float* gradients, float* first_moment, float* second_moment, std::int64_t elements,
                  const AdamW& optimizer, std::int64_t step) {
  const double t = static_cast<double>(step);
  const float first_correction = static_cast<float>(1.0 / (1.0 - std::pow(static_cast<double>(optimizer.beta1), t)));
  const float second_correction = static_cast<float>(1.0 / (1.0 - std::pow(static_cast<double>(optimizer.beta2), t)));
  for (std::int64_t i = 0; i < elements; ++i) {
    const float g = gradients[i];
    const float m = optimizer.beta1 * first_moment[i] + (1.0F - optimizer.beta1) * g;
    const float v = optimizer.beta2 * second_moment[i] + (1.0F - optimizer.beta2) * g * g;
    const float direction = m * first_correction / (std::sqrt(v * second_correction) + optimizer.epsilon);
    parameters[i] -= optimizer.learning_rate * (direction + optimizer.weight_decay * parameters[i]);
    first_moment[i] = m;
    second_moment[i] = v;
    gradients[i] = 0.0F;
  }
}

}}  // namespace plumb::kernels
