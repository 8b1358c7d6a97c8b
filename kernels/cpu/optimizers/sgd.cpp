#include "kernels/cpu/optimizers/sgd.h"

namespace plumb { inline namespace kernels {

void sgd_update(float* parameters, float* gradients, float* momentum, std::int64_t elements, const Sgd& optimizer) {
  for (std::int64_t i = 0; i < elements; ++i) {
    const float m = optimizer.momentum * momentum[i] + (gradients[i] + optimizer.weight_decay * parameters[i]);
    parameters[i] -= optimizer.learning_rate * m;
    momentum[i] = m;
    gradients[i] = 0.0F;
  }
}

}}  // namespace plumb::kernels
