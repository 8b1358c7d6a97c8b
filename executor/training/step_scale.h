#pragma once
// What all ranks agree on before an optimizer step: by how much gradients are scaled, or that the step is left out.
//
//   const GradientMeasure whole = ...;  // summed over all ranks
//   const StepScale scale = step_scale(whole, loss_scale, clip_norm);
//   loss_scale = next_loss_scale(loss_scale, whole);

#include <cstdint>

namespace plumb { inline namespace executor {

/// Of the gradients that one rank speaks for, or of a whole model's: each element counts once.
struct GradientMeasure {
  double square_sum = 0;   ///< as they stand, loss scale included
  bool overflows = false;  ///< one is not finite, or beyond the largest number of the training's 16-bit format
};

/// Dynamic loss scaling (Micikevicius et al. 2018, in the form of PyTorch's and Megatron-LM's scalers).
struct LossScale {
  double scale = 1;
  int good_steps = 0;  ///< since the scale last changed

  friend bool operator==(const LossScale&, const LossScale&) = default;
};

inline constexpr double kFirstFp16LossScale = 65536;
inline constexpr double kLeastLossScale = 1;
inline constexpr int kLossScaleGrowthInterval = 2000;  ///< good steps after which the scale doubles

/// What the optimizer does with the gradients.
struct StepScale {
  float factor = 1;   ///< gradients are multiplied by it first
  bool skip = false;  ///< leave weights and state as they are
};

/// Takes the loss scale out and clips by the global norm: factor = min(1, clip_norm / norm) / scale, with `clip_norm` 0
/// for no clipping (Pascanu et al. 2013). An overflow skips the step.
StepScale step_scale(const GradientMeasure& whole, const LossScale& loss_scale, double clip_norm);

/// Half the scale after an overflow, twice as much after kLossScaleGrowthInterval good steps.
/// Throws InputError if gradients overflow at kLeastLossScale.
LossScale next_loss_scale(const LossScale& loss_scale, const GradientMeasure& whole);

}}  // namespace plumb::executor
