#pragma once
// Runs of the device executor on the host's machine, as tests beside the cpu backend start them.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "executor/device/run_device.h"
#include "tests/executor/device/host_machine.h"
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

/// In the order of the lists, or with a seed in a random one that streams and events allow. Captures gradients and
/// weights.
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

/// Whether every stage adds the gradients of its norms (I) and of its other weights (W) by ascending micro-batch.
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
