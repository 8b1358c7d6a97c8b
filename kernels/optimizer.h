#pragma once
// The optimizer's numbers, the same for every backend.

namespace plumb {

/// AdamW (Loshchilov & Hutter 2019) with bias correction; weight decay is decoupled and spares one-dimensional tensors.
struct AdamW {
  float learning_rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float weight_decay = 0.1F;
};

}  // namespace plumb
