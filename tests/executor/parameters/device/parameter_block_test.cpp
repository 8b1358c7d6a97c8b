// A stage's two blocks of parameters: what is done with experts' weights and state besides, and apart from, the
// others'.

#include "executor/parameters/device/parameter_block.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/training/run.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

/// Four replicas of a model whose ends share a table; experts over `experts` of them.
RunSpec replicas(int experts, int zero, bool is_short = false) {
  const Schedule order = is_short ? make_schedule("naive", {.ranks = 1, .microbatches = 1})
                                  : make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
  RunSpec spec = spec_of_lowered(shared_expert_model(is_short ? 1 : 2),
                                 lower(order, {.data = {.enabled = true, .zero = zero}}), 4);
  spec.grid.expert = experts;
  spec.zero = zero;
  spec.sequence = 8;
  spec.steps = is_short ? 2 : 4;
  spec.optimizer = smooth_adamw();
  return spec;
}

/// The state behind half of the steps.
std::shared_ptr<const TrainingState> state_halfway(RunSpec spec, bool on_device) {
  spec.steps /= 2;
  std::string bytes;
  const auto keep = [&](const TrainingState& state) { bytes = to_bytes(state); };
  HostMachine machine(spec.half);
  if (on_device)
    run_device(spec, machine, {.checkpoint_every = 2, .checkpoint = keep});
  else
    run(spec, {.checkpoint_every = 2, .checkpoint = keep});
  return std::make_shared<const TrainingState>(training_state_from_bytes(bytes, "the checkpoint"));
}

}  // namespace

TEST_CASE("checkpoints of experts go on elsewhere: in another layout, and on the other backend") {
  const RunSpec whole = replicas(1, 0);
  const RunResult expected = run(whole, {.capture_weights = true});
  for (const std::pair<int, int>& layout : {std::pair(2, 0), std::pair(2, 1), std::pair(2, 3), std::pair(4, 2)}) {
    const int experts = layout.first, zero = layout.second;
    CAPTURE(experts);
    CAPTURE(zero);
    RunSpec spec = replicas(experts, zero), other = whole;
    const RunResult kept = on_host(spec);
    CHECK(worst_difference(kept.weights, expected.weights) < 1e-4);
    other.resume = state_halfway(spec, true);
    CHECK(worst_difference(run(other, {.capture_weights = true}).weights, expected.weights) < 1e-4);
    spec.resume = other.resume;
    CHECK(on_host(spec).weights == kept.weights);
    spec.resume = state_halfway(whole, false);
    CHECK(worst_difference(on_host(spec).weights, expected.weights) < 1e-4);
  }
}

TEST_CASE("norms of spread experts count each element once, and an overflow anywhere skips the step") {
  for (const int zero : {0, 2}) {
    RunSpec spec = replicas(2, zero);
    spec.clip_norm = 0.05F;
    const RunResult cpu = run(spec, {.capture_weights = true});
    CHECK(worst_difference(on_host(spec).weights, cpu.weights) < 1e-4);
  }
  RunSpec spec = replicas(4, 1, true);
  spec.half = HalfFormat::kFp16;
  const RunResult cpu = run(spec), device = on_host(spec);
  CHECK(device.skipped_steps == cpu.skipped_steps);
  check_losses(device, cpu, 2e-2);
}

TEST_CASE("the state of spread experts in the host's memory gives the bits of one on the device") {
  for (const int zero : {0, 3})
    for (const bool is_half : {false, true}) {
      RunSpec spec = replicas(2, zero, is_half);
      if (is_half) spec.half = HalfFormat::kBf16;
      const RunResult there = on_host(spec);
      spec.offload_optimizer = true;
      HostMachine machine(spec.half, 3);
      const RunResult away = run_device(spec, machine, {.capture_weights = true, .update_window_bytes = 3000});
      CHECK(away.weights == there.weights);
      CHECK(away.parameter_bytes == there.parameter_bytes);
    }
}

TEST_CASE("weights of experts that a step has replaced stay with those of the other parameters") {
  for (const std::optional<HalfFormat> half : {std::optional<HalfFormat>(), std::optional(HalfFormat::kBf16)}) {
    RunSpec spec = spec_of(mixtral_model(4), make_schedule("pipedream", {.ranks = 3, .microbatches = 5}));
    spec.steps = 2;
    spec.sequence = 8;
    spec.half = half;
    spec.optimizer = smooth_adamw();
    const RunResult cpu = run(spec, {.capture_weights = true}), device = on_host(spec);
    check_losses(device, cpu, half ? 2e-2 : 1e-5);
    if (!half) CHECK(worst_difference(device.weights, cpu.weights) < 1e-4);
  }
}

}  // namespace plumb::test
