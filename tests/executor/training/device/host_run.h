#pragma once
// Runs of the device executor on the host's machine, as tests beside the cpu backend start them.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "executor/training/device/run_device.h"
#include "executor/training/run.h"
#include "tests/executor/machines/host_machine.h"
#include "tests/executor/small_model.h"

namespace plumb::test {

/// GPT-2's block with every bias, behind learned positions; the head has a table of its own.
inline std::vector<Layer> untied_gpt_model(int blocks = 4) {
  std::vector<Layer> model = gpt_model(blocks);
  std::get<HeadLayer>(model.back()).tied = false;
  return model;
}

/// Llama's blocks, whose small heads are not on tensor cores (which the host plays slowly), between ends that share a
/// table.
inline std::vector<Layer> tied_llama_model() {
  std::vector<Layer> model = llama_model();
  std::get<HeadLayer>(model.back()).tied = true;
  return model;
}

/// AdamW whose epsilon is so large that a gradient next to 0 steps next to nowhere: runs that round otherwise stay
/// together.
inline AdamW smooth_adamw() {
  return {.learning_rate = 1e-2F, .epsilon = 1e-2F};
}

/// Runs in the order of the lists, or with a seed in a random one that streams and events allow. Captures gradients
/// and weights.
inline RunResult on_host(const RunSpec& spec, std::optional<unsigned> seed = {}) {
  HostMachine machine(spec.half, seed);
  return run_device(spec, machine, {.capture_gradients = true, .capture_weights = true});
}

/// The losses of a device, step by step those of the cpu backend to a relative `tolerance`.
inline void check_losses(const RunResult& device, const RunResult& cpu, double tolerance) {
  REQUIRE(device.losses.size() == cpu.losses.size());
  for (std::size_t i = 0; i < cpu.losses.size(); ++i)
    CHECK(device.losses[i] == doctest::Approx(cpu.losses[i]).epsilon(tolerance));
}

/// Losses (those of balance too), and in fp32, which a tolerance up to 1e-4 stands for, weights and the gradients of
/// the first and the last step.
inline void check_beside(const RunResult& device, const RunResult& cpu, double tolerance = 1e-5) {
  check_losses(device, cpu, tolerance);
  REQUIRE(device.balance_losses.size() == cpu.balance_losses.size());
  for (std::size_t i = 0; i < cpu.balance_losses.size(); ++i)
    CHECK(device.balance_losses[i] == doctest::Approx(cpu.balance_losses[i]).epsilon(tolerance));
  if (tolerance > 1e-4) return;
  CHECK(worst_difference(device.gradients.front(), cpu.gradients.front()) < tolerance);
  CHECK(worst_difference(device.gradients.back(), cpu.gradients.back()) < 1e-3);
  CHECK(worst_difference(device.weights, cpu.weights) < 1e-4);
}

/// Checks that the streams give the same bits in a random order.
inline void check_any_order(const RunSpec& spec, const RunResult& device) {
  const RunResult other = on_host(spec, 3);
  CHECK(other.losses == device.losses);
  CHECK(other.weights == device.weights);
}

inline void check_beside_cpu(const RunSpec& spec, double tolerance = 1e-5) {
  check_beside(on_host(spec), run(spec, {.capture_gradients = true, .capture_weights = true}), tolerance);
}

/// check_beside_cpu and check_any_order.
inline void check_beside_cpu_in_any_order(const RunSpec& spec) {
  const RunResult device = on_host(spec);
  check_beside(device, run(spec, {.capture_gradients = true, .capture_weights = true}));
  check_any_order(spec, device);
}

/// Checks that activations are computed again to the same bits, whichever are rebuilt, and that the run follows the cpu
/// backend in bf16.
inline void check_rebuilt_and_in_16_bits(const RunSpec& spec) {
  const RunResult expected = on_host(spec);
  for (const Recompute rebuild : {Recompute::kStage, Recompute::kFull, Recompute::kSelective}) {
    CAPTURE(static_cast<int>(rebuild));
    RunSpec again = spec;
    again.rebuild = rebuild;
    CHECK(on_host(again).weights == expected.weights);
  }
  RunSpec stored = spec;
  stored.half = HalfFormat::kBf16;
  check_beside_cpu(stored, 2e-2);
}

/// Checks ranks that share a stage's state: closer losses, the first step's gradients, the bytes that each rank holds,
/// and check_any_order. Returns the device's result.
inline RunResult check_shares_beside_cpu(const RunSpec& spec) {
  const RunResult cpu = run(spec, {.capture_gradients = true}), device = on_host(spec);
  check_losses(device, cpu, spec.half ? 5e-3 : 1e-6);
  if (!spec.half) CHECK(worst_difference(device.gradients.front(), cpu.gradients.front()) < 1e-5);
  CHECK(device.parameter_bytes == cpu.parameter_bytes);
  check_any_order(spec, device);
  return device;
}

/// True if every stage adds the gradients of its norms (I) and of its other weights (W) by ascending micro-batch.
inline bool adds_in_ascending_order(const Schedule& schedule) {
  const auto is_ascending = [&](const std::vector<Action>& actions, std::size_t stage, auto gives) {
    int last = -1;
    return std::ranges::all_of(actions, [&](const Action& action) {
      if (static_cast<std::size_t>(action.stage) != stage || !gives(action.op)) return true;
      return std::exchange(last, action.microbatch) < action.microbatch;
    });
  };
  for (const std::vector<Action>& actions : schedule.ranks)
    for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage)
      if (!is_ascending(actions, stage, gives_input_gradient) || !is_ascending(actions, stage, gives_weight_gradient))
        return false;
  return true;
}

}  // namespace plumb::test
