#include "kernels/cpu/optimizers/lion.h"

namespace plumb { inline namespace kernels {

void lion_update(float* parameters, float* gradients, float* momentum, std::int64_t elements, const Lion& optimizer) {
  for (std::int64_t i = 0; i < elements; ++i) {
    const float g = gradients[i], m = momentum[i];
    const float blend = optimizer.beta1 * m + (1.0F - optimizer.beta1) * g;
    const float sign = static_cast<float>(blend > 0.0F) - static_cast<float>(blend < 0.0F);
    parameters[i] -= optimizer.learning_rate * (sign + optimizer.weight_decay * parameters[i]);
    momentum[i] = optimizer.beta2 * m + (1.0F - optimizer.beta2) * g;
    gradients[i] = 0.0F;
  }
}

}}  // namespace plumb::kernels
