#include "executor/timed/timed_stage.h"

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb {
namespace {

/// Tensors have 4-byte elements.
std::int64_t elements_of(std::int64_t bytes) {
  return (bytes + 3) / 4;
}

}  // namespace

TimedStage::TimedStage(int stage, const TimedStageBytes& bytes, double speed, const CostTable& costs,
                       const Sleeper& sleeper, TensorPool& pool)
    : stage_(stage),
      bytes_(bytes),
      speed_(speed),
      costs_(costs),
      sleeper_(sleeper),
      pool_(pool),
      gradients_(pool.take_zeros(elements_of(bytes.gradients))) {
  if (!(speed > 0))
    throw SpecError(fmt::format("stage {}: a speed of {}; give a share of normal above 0", stage, speed));
}

void TimedStage::wait(Op op, MicrobatchSlice of) const {
  const SimTime start = sleeper_.now();
  const SimTime duration = duration_of(
      costs_, {.op = op, .part = static_cast<std::int16_t>(of.slice), .stage = stage_, .microbatch = of.microbatch});
  sleeper_.sleep_until(start + to_sim_time(to_seconds(duration) / speed_));
}

Tensor TimedStage::forward(MicrobatchSlice of, Tensor) {
  wait(Op::kForward, of);
  return pool_.take_zeros(elements_of(bytes_.output));
}

Tensor TimedStage::backward(MicrobatchSlice of, Tensor) {
  wait(Op::kBackward, of);
  return pool_.take_zeros(elements_of(bytes_.input_gradient));
}

Tensor TimedStage::input_grad(MicrobatchSlice of, Tensor) {
  wait(Op::kInputGrad, of);
  return pool_.take_zeros(elements_of(bytes_.input_gradient));
}

std::vector<Tensor> TimedStage::take_activations(MicrobatchSlice of) {
  wait(Op::kOffload, of);
  return {};
}

void TimedStage::put_activations(MicrobatchSlice of, std::vector<Tensor>) {
  wait(Op::kReload, of);
}

std::int64_t TimedStage::input_elements(int) const {
  return elements_of(bytes_.input);
}

std::int64_t TimedStage::output_elements(int) const {
  return elements_of(bytes_.output_gradient);
}

}  // namespace plumb
