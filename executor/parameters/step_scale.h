#pragma once
// The agreement of all ranks before an optimizer step: the factor of the gradients, or that the step is skipped.
//
//   const GradientMeasure whole = ...;  // summed over all ranks
//   const StepScale scale = step_scale(whole, loss_scale, clip_norm);
//   loss_scale = next_loss_scale(loss_scale, whole);

#include <cstdint>

namespace plumb { inline namespace executor {

/// The measure of the gradients that one rank counts, or of a whole model's gradients, in which each element counts
/// once.
struct GradientMeasure {
  double square_sum = 0;   ///< sum of their squares, with the loss scale in them
  bool overflows = false;  ///< true if one is not finite, or beyond the largest number of fp16, if training is in fp16
};

/// Dynamic loss scaling (Micikevicius et al. 2018, in the form of PyTorch's and Megatron-LM's scalers).
struct LossScale {
  double scale = 1;
  int good_steps = 0;  ///< steps since the scale last changed

  friend bool operator==(const LossScale&, const LossScale&) = default;
};

inline constexpr double kFirstFp16LossScale = 65536;
inline constexpr double kLeastLossScale = 1;
inline constexpr int kLossScaleGrowthInterval = 2000;  ///< good steps after which the scale doubles

/// The scale of the gradients in an optimizer step.
struct StepScale {
  float factor = 1;   ///< gradients are multiplied by it first
  bool skip = false;  ///< true: weights and state stay as they are
};

/// Removes the loss scale and clips by the global norm: factor = min(1, clip_norm / norm) / scale, with `clip_norm` 0
/// for no clipping (Pascanu et al. 2013). An overflow skips the step.
StepScale step_scale(const GradientMeasure& whole, const LossScale& loss_scale, double clip_norm);

/// Returns half the scale after an overflow, and twice the scale after kLossScaleGrowthInterval good steps. Throws
/// InputError if gradients overflow at kLeastLossScale.
LossScale next_loss_scale(const LossScale& loss_scale, const GradientMeasure& whole);

}}  // namespace plumb::executor
