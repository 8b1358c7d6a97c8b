// Schedules with optimizer steps inside, on a device: the cpu backend's losses and gradients, replay after replay.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "executor/training/device/run_device.h"
#include "executor/training/run.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

/// AdamW whose epsilon is so large that a gradient next to 0 steps next to nowhere: runs that round otherwise stay
/// together.
RunSpec smooth_spec(const std::vector<Layer>& model, const std::string& name, ScheduleParameters parameters,
                    int replays = 2) {
  RunSpec spec = spec_of(model, make_schedule(name, parameters));
  spec.steps = replays;
  spec.optimizer = smooth_adamw();
  return spec;
}

std::vector<RunSpec> asynchronous_specs() {
  return {smooth_spec(llama_model(), "pipedream", {.ranks = 3, .microbatches = 7}),
          smooth_spec(untied_gpt_model(), "pipedream", {.ranks = 3, .microbatches = 7, .vertical_sync = true}),
          smooth_spec(untied_gpt_model(), "pipedream", {.ranks = 4, .microbatches = 6}),
          smooth_spec(llama_model(), "pipedream-2bw", {.ranks = 3, .microbatches = 7, .batch = 2}),
          smooth_spec(llama_model(), "pipedream", {.ranks = 1, .microbatches = 3})};
}

}  // namespace

TEST_CASE("a device goes through asynchronous schedules as the CPU does: the same losses and gradients in every step") {
  for (const RunSpec& spec : asynchronous_specs()) {
    INFO(spec.schedule.name, " on ", spec.schedule.ranks.size());
    const RunResult cpu = run(spec, {.capture_gradients = true, .capture_weights = true}), device = on_host(spec);
    check_losses(device, cpu, 1e-5);
    REQUIRE(device.gradients.size() == cpu.gradients.size());
    for (std::size_t i = 0; i < cpu.gradients.size(); ++i)
      CHECK(worst_difference(device.gradients[i], cpu.gradients[i]) < 1e-3);
    CHECK(worst_difference(device.weights, cpu.weights) < 1e-4);
    CHECK(device.parameter_bytes == cpu.parameter_bytes);
  }
}

TEST_CASE("which version of the weights a device takes makes a difference that these bounds see") {
  const ScheduleParameters parameters{.ranks = 3, .microbatches = 7};
  RunSpec stashed = smooth_spec(llama_model(), "pipedream", parameters), synchronised = stashed;
  synchronised.schedule.weights = WeightPolicy::kVerticalSync;
  CHECK(worst_difference(on_host(synchronised).gradients.back(), on_host(stashed).gradients.back()) > 1e-2);
}

TEST_CASE("asynchronous schedules give a device the same bits in every order that streams and events allow") {
  for (const RunSpec& spec : asynchronous_specs()) {
    INFO(spec.schedule.name, " on ", spec.schedule.ranks.size());
    const RunResult expected = on_host(spec);
    for (unsigned seed = 1; seed <= 4; ++seed) {
      HostMachine machine({}, seed);
      const RunResult result = run_device(spec, machine, {.capture_weights = true});
      CHECK(result.losses == expected.losses);
      CHECK(result.weights == expected.weights);
    }
    HostMachine keeping;
    keeping.keep_replay();
    CHECK(run_device(spec, keeping, {.capture_weights = true}).weights == expected.weights);
  }
}

TEST_CASE("in bf16 a replaced version keeps its vectors in fp32, and a device's losses follow the CPU's") {
  for (RunSpec spec : {smooth_spec(untied_gpt_model(), "pipedream", {.ranks = 3, .microbatches = 7}),
                       smooth_spec(llama_model(), "pipedream-2bw", {.ranks = 2, .microbatches = 6})}) {
    spec.half = HalfFormat::kBf16;
    const std::vector<double> expected = run(spec).losses, losses = on_host(spec).losses;
    REQUIRE(losses.size() == expected.size());
    for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(2e-2));
  }
}

TEST_CASE("a device recomputes with the weights that the forward had") {
  RunSpec spec = smooth_spec(llama_model(), "pipedream", {.ranks = 3, .microbatches = 6});
  const RunResult kept = on_host(spec);
  spec.rebuild = Recompute::kStage;
  const RunResult rebuilt = on_host(spec);
  CHECK(rebuilt.losses == kept.losses);
  CHECK(rebuilt.weights == kept.weights);
}

TEST_CASE("versions of the weights lie in a device's arena: nothing is allocated behind the first step") {
  const std::vector<Layer> model = llama_model();
  const auto run_once = [&](const char* name, int replays) {
    HostMachine machine;
    const RunResult result = run_device(smooth_spec(model, name, {.ranks = 3, .microbatches = 6}, replays), machine);
    std::int64_t said = 0;
    for (const std::int64_t bytes : result.peak_memory_bytes) said += bytes;
    CHECK(said == machine.allocated());
    return std::pair{result.peak_memory_bytes, machine.allocations()};
  };
  const auto [bytes, allocations] = run_once("pipedream", 3);
  CHECK(run_once("pipedream", 1) == std::pair{bytes, allocations});
  const std::vector<std::int64_t> synchronous = run_once("1f1b", 1).first;
  const std::vector<std::vector<Layer>> stages = cut(model, 3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    std::int64_t weight_bytes = 0;
    for (const Layer& layer : stages[rank]) weight_bytes += 4 * parameter_count(layer);
    // A rank keeps p-1-rank versions; arena and messages cost far less than one of them besides.
    const double versions = static_cast<double>(bytes[rank] - synchronous[rank]) / static_cast<double>(weight_bytes);
    CHECK(versions == doctest::Approx(static_cast<double>(2 - rank)).epsilon(0.25));
  }
}

}  // namespace plumb::test
