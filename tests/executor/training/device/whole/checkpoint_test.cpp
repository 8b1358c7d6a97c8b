// Checkpoints of a device: a training that was stopped goes on with the same bits, and moves between backends.

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "executor/parameters/training_state.h"
#include "executor/training/device/run_device.h"
#include "executor/training/run.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"
#include "tests/sanitized.h"

namespace plumb::test {
namespace {

constexpr int kStoppedSteps = 5, kStopStep = 2;

/// A spec whose runs stay together although they round otherwise.
/// `zero`: of two replicas; negative: there is one.
RunSpec smooth_dropout_spec(int zero = -1) {
  const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 4});
  const int data = zero < 0 ? 1 : 2;
  RunSpec spec = spec_of_lowered(with_dropout(untied_gpt_model(), 0.1),
                                 lower(order, {.data = {.enabled = data > 1, .zero = std::max(0, zero)}}), data);
  spec.zero = std::max(0, zero);
  spec.steps = kStoppedSteps;
  spec.optimizer = smooth_adamw();
  return spec;
}

/// The state behind kStopStep steps, as it is read from a file.
std::shared_ptr<const TrainingState> state_at_stop(RunSpec spec, bool on_device) {
  spec.steps = kStopStep;
  spec.resume = nullptr;
  std::string bytes;
  const auto keep = [&](const TrainingState& state) { bytes = to_bytes(state); };
  if (on_device) {
    HostMachine machine(spec.half);
    run_device(spec, machine, {.checkpoint_every = 5, .checkpoint = keep});
  } else {
    run(spec, {.checkpoint_every = 5, .checkpoint = keep});
  }
  return std::make_shared<const TrainingState>(training_state_from_bytes(bytes, "the checkpoint"));
}

}  // namespace

TEST_CASE("a device goes on from its own checkpoint with the bits of a run that never stopped") {
  std::vector<RunSpec> specs(6, smooth_dropout_spec());
  specs[1].half = HalfFormat::kBf16;
  specs[2].half = HalfFormat::kFp16;
  specs[3].optimizer = Sgd{.learning_rate = 0.1F};
  specs[4].optimizer = AdamW8Bit{};
  specs[5].optimizer = Adafactor{};
  specs[5].half = HalfFormat::kBf16;
  specs[5].offload_optimizer = true;
  for (RunSpec& spec : specs) {
    INFO("optimizer " << spec.optimizer.index() << ", in half " << spec.half.has_value());
    const RunResult whole = on_host(spec);
    spec.resume = state_at_stop(spec, true);
    const RunResult rest = on_host(spec);
    CHECK(rest.weights == whole.weights);
    CHECK(rest.first_step == kStopStep);
    REQUIRE(rest.losses.size() == kStoppedSteps - kStopStep);
    for (std::size_t i = 0; i < rest.losses.size(); ++i) CHECK(rest.losses[i] == whole.losses[i + kStopStep]);
    CHECK(rest.loss_scales.back() == whole.loss_scales.back());
  }
}

TEST_CASE("replicas that drop, and that shard their state, go on from a checkpoint, on a device as on the CPU") {
  for (const int zero : {0, 1, 2, 3}) {
    INFO("ZeRO " << zero);
    RunSpec spec = smooth_dropout_spec(zero);
    const RunResult cpu = run(spec, {.capture_weights = true}), whole = on_host(spec);
    CHECK(worst_difference(whole.weights, cpu.weights) < 1e-4);
    spec.resume = state_at_stop(spec, true);
    CHECK(on_host(spec).weights == whole.weights);
    CHECK(worst_difference(run(spec, {.capture_weights = true}).weights, cpu.weights) < 1e-4);
  }
}

TEST_CASE("in 16 bits, too, where vectors come from shares as they are stored" * doctest::skip(kIsSanitized)) {
  for (const int zero : {1, 2, 3})
    for (const HalfFormat half : {HalfFormat::kBf16, HalfFormat::kFp16}) {
      INFO("ZeRO " << zero);
      RunSpec spec = smooth_dropout_spec(zero);
      spec.half = half;
      const RunResult whole = on_host(spec);
      spec.resume = state_at_stop(spec, true);
      CHECK(on_host(spec).weights == whole.weights);
    }
}

TEST_CASE("a training goes from the CPU to a device, and back") {
  const std::vector<OptimizerSettings> optimizers = {smooth_adamw(), AdamW8Bit{.adamw = smooth_adamw()}, Adafactor{}};
  for (const OptimizerSettings& optimizer : optimizers) {
    INFO("optimizer " << optimizer.index());
    RunSpec spec = smooth_dropout_spec();
    spec.optimizer = optimizer;
    const RunResult whole = run(spec, {.capture_weights = true});
    const auto check = [&](const RunResult& rest) {
      for (std::size_t i = 0; i < rest.losses.size(); ++i)
        CHECK(rest.losses[i] == doctest::Approx(whole.losses[kStopStep + i]).epsilon(1e-4));
      // Codes may round otherwise. Adafactor divides the bias of keys, whose gradient is rounding alone, by its size.
      const double worst = optimizer.index() == 0 ? 1e-4 : 1e-2;
      if (!std::holds_alternative<Adafactor>(optimizer)) CHECK(worst_difference(rest.weights, whole.weights) < worst);
    };
    spec.resume = state_at_stop(spec, false);
    check(on_host(spec));
    spec.resume = state_at_stop(spec, true);
    check(run(spec, {.capture_weights = true}));
  }
}

TEST_CASE("checkpoints come as often as they are asked for, the last behind the last step") {
  std::vector<std::int64_t> steps;
  HostMachine machine;
  run_device(smooth_dropout_spec(), machine,
             {.checkpoint_every = 2, .checkpoint = [&](const TrainingState& state) { steps.push_back(state.steps); }});
  CHECK(steps == std::vector<std::int64_t>{2, 4, 5});
}

TEST_CASE("a device that is asked to end does so before the next step, with a checkpoint; of no step, too") {
  const RunSpec spec = smooth_dropout_spec();
  const RunResult whole = on_host(spec);
  for (const int last : {0, 2}) {
    INFO("behind step " << last);
    int asked = 0;
    std::string bytes;
    HostMachine machine;
    const RunResult ended = run_device(spec, machine,
                                       {.checkpoint_every = 5,
                                        .checkpoint = [&](const TrainingState& state) { bytes = to_bytes(state); },
                                        .ends = [&] { return asked++ >= last; }});
    CHECK(std::ssize(ended.losses) == last);
    RunSpec rest = spec;
    rest.resume = std::make_shared<const TrainingState>(training_state_from_bytes(bytes, "the checkpoint"));
    CHECK(rest.resume->steps == last);
    CHECK(on_host(rest).weights == whole.weights);
  }
}

}  // namespace plumb::test
