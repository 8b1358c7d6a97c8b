#pragma once
// The optimizers' hyperparameters, which all backends share. No optimizer applies weight decay to one-dimensional
// tensors.

#include <variant>

namespace plumb { inline namespace kernels {

/// AdamW (Loshchilov & Hutter 2019) with bias correction; weight decay is decoupled.
struct AdamW {
  float learning_rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float weight_decay = 0.1F;

  friend bool operator==(const AdamW&, const AdamW&) = default;
};

/// AdamW whose moments take a byte an element, quantised in blocks (Dettmers et al. 2022;
/// kernels/cpu/optimizers/adamw_8bit.h).
struct AdamW8Bit {
  AdamW adamw;

  friend bool operator==(const AdamW8Bit&, const AdamW8Bit&) = default;
};

/// Gradient descent with momentum (Sutskever et al. 2013, in PyTorch's form); weight decay is added to the gradient.
struct Sgd {
  float learning_rate = 1e-2F;
  float momentum = 0.9F;
  float weight_decay = 0.0F;

  friend bool operator==(const Sgd&, const Sgd&) = default;
};

/// Lion (Chen et al. 2023): the sign of an interpolated momentum; weight decay is decoupled.
struct Lion {
  float learning_rate = 1e-4F;
  float beta1 = 0.9F;
  float beta2 = 0.99F;
  float weight_decay = 0.1F;

  friend bool operator==(const Lion&, const Lion&) = default;
};

/// Adafactor without momentum (Shazeer & Stern 2018, algorithms 4 to 6).
struct Adafactor {
  float learning_rate = 1e-2F;      ///< relative to the root mean square of the parameter
  float decay_exponent = 0.8F;      ///< the second moment's decay in step t is 1 - t^-exponent
  float gradient_epsilon = 1e-30F;  ///< added to squared gradients
  float parameter_epsilon = 1e-3F;  ///< the smallest root mean square that a parameter counts with
  float clipping_threshold = 1.0F;  ///< largest root mean square of the update
  float weight_decay = 0.0F;        ///< decoupled

  friend bool operator==(const Adafactor&, const Adafactor&) = default;
};

using OptimizerSettings = std::variant<AdamW, AdamW8Bit, Sgd, Lion, Adafactor>;

}}  // namespace plumb::kernels
