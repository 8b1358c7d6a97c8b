#include "executor/parameters/step_scale.h"

#include <algorithm>
#include <cmath>

#include "schedules/error.h"

namespace plumb { inline namespace executor {

StepScale step_scale(const GradientMeasure& whole, const LossScale& loss_scale, double clip_norm) {
  if (whole.overflows) return {.factor = 0, .skip = true};
  const double norm = std::sqrt(whole.square_sum) / loss_scale.scale;
  const double clip = clip_norm > 0 && norm > clip_norm ? clip_norm / norm : 1.0;
  return {.factor = static_cast<float>(clip / loss_scale.scale)};
}

LossScale next_loss_scale(const LossScale& loss_scale, const GradientMeasure& whole) {
  if (whole.overflows) {
    if (loss_scale.scale <= kLeastLossScale)
      throw InputError(
          "the gradients overflow fp16 although the loss is not scaled up any more: lower the learning rate, or train "
          "in bf16 or fp32");
    return {.scale = std::max(kLeastLossScale, loss_scale.scale / 2)};
  }
  if (loss_scale.good_steps + 1 < kLossScaleGrowthInterval) return {loss_scale.scale, loss_scale.good_steps + 1};
  return {.scale = loss_scale.scale * 2};
}

}}  // namespace plumb::executor
