#include "executor/timed/timed_stage.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns the 4-byte elements of a tensor of so many bytes, rounded up.
std::int64_t elements_of(std::int64_t bytes) {
  return (bytes + 3) / 4;
}

}  // namespace

TimedStage::TimedStage(int stage, const TimedStageBytes& bytes, double speed, const CostTable& costs,
                       const Sleeper& sleeper, TensorPool& pool)
    : stage_(stage), bytes_(bytes), speed_(speed), costs_(costs), sleeper_(sleeper), pool_(pool) {
  for (const std::int64_t bucket : bytes.buckets) gradients_.push_back(pool.take_zeros(elements_of(bucket)));
  if (!(speed > 0))
    throw SpecError(fmt::format("stage {}: a speed of {}; give a share of normal above 0", stage, speed));
}

SimTime TimedStage::end_of(Op op, MicrobatchSlice of, SimTime start) const {
  if (in_pair_) return start;
  const SimTime duration = duration_of(
      costs_, {.op = op, .part = static_cast<std::int16_t>(of.slice), .stage = stage_, .microbatch = of.microbatch});
  return start + to_sim_time(to_seconds(duration) / speed_, "an action at its rank's speed");
}

void TimedStage::wait(Op op, MicrobatchSlice of) const {
  sleeper_.sleep_until(end_of(op, of, sleeper_.now()));
}

void TimedStage::wait_with_buckets(Op op, MicrobatchSlice of, SimTime start) {
  const SimTime end = end_of(op, of, start);
  if (const BucketHook complete = std::exchange(complete_, {})) {
    const std::vector<Seconds>& offsets = costs_.stages[static_cast<std::size_t>(stage_)].bucket_offsets;
    for (std::size_t bucket = 0; bucket < gradients_.size(); ++bucket) {
      sleeper_.sleep_until(bucket < offsets.size() ? std::min(end, start + to_sim_time(offsets[bucket] / speed_))
                                                   : end);
      complete(static_cast<int>(bucket));
    }
  }
  sleeper_.sleep_until(end);
}

std::vector<Collective> TimedStage::start_reduction(int bucket) {
  return {all_reduce(gradients_[static_cast<std::size_t>(bucket)].values())};
}

// An operation writes its output within its duration, so the output is made before the sleep.

Tensor TimedStage::forward(MicrobatchSlice of, Tensor) {
  const SimTime end = end_of(Op::kForward, of, sleeper_.now());
  Tensor output = pool_.take_zeros(elements_of(bytes_.output));
  sleeper_.sleep_until(end);
  return output;
}

Tensor TimedStage::backward(MicrobatchSlice of, Tensor) {
  const SimTime start = sleeper_.now();
  Tensor gradient = pool_.take_zeros(elements_of(bytes_.input_gradient));
  wait_with_buckets(Op::kBackward, of, start);
  return gradient;
}

Tensor TimedStage::input_grad(MicrobatchSlice of, Tensor) {
  const SimTime end = end_of(Op::kInputGrad, of, sleeper_.now());
  Tensor gradient = pool_.take_zeros(elements_of(bytes_.input_gradient));
  sleeper_.sleep_until(end);
  return gradient;
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

}}  // namespace plumb::executor
