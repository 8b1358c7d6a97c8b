// Dropout in a device's layers: the masks that the cpu backend draws, in every replay.

#include <doctest/doctest.h>

#include <vector>

#include "executor/training/device/run_device.h"
#include "executor/training/run.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

RunSpec dropout_spec(const std::vector<Layer>& model, const char* name) {
  RunSpec spec = spec_of(with_dropout(model), make_schedule(name, {.ranks = 3, .microbatches = 5}));
  spec.steps = 3;
  spec.optimizer = smooth_adamw();  // a gradient next to 0 steps next to nowhere
  return spec;
}

}  // namespace

TEST_CASE("a device drops what the CPU drops: the same losses, gradients and weights, step after step") {
  for (const char* name : {"1f1b", "zb-h1", "pipedream"})
    for (const std::vector<Layer>& model : {llama_model(), untied_gpt_model()}) {
      INFO(name);
      const RunSpec spec = dropout_spec(model, name);
      const RunResult cpu = run(spec, {.capture_gradients = true, .capture_weights = true}), device = on_host(spec);
      check_losses(device, cpu, 1e-5);
      CHECK(worst_difference(device.gradients.front(), cpu.gradients.front()) < 1e-5);
      CHECK(worst_difference(device.gradients.back(), cpu.gradients.back()) < 1e-3);
      CHECK(worst_difference(device.weights, cpu.weights) < 1e-4);
    }
}

TEST_CASE("a device recomputes with the masks of the forward, and a kept replay draws new ones each time") {
  RunSpec spec = dropout_spec(untied_gpt_model(), "1f1b");
  const RunResult kept = on_host(spec);
  HostMachine keeping;
  keeping.keep_replay();
  CHECK(run_device(spec, keeping, {.capture_weights = true}).weights == kept.weights);
  for (const Recompute what : {Recompute::kSelective, Recompute::kStage}) {
    spec.rebuild = what;
    CHECK(on_host(spec).weights == kept.weights);
  }
}

TEST_CASE("in bf16 a device with dropout follows the CPU") {
  RunSpec spec = dropout_spec(untied_gpt_model(), "1f1b");
  spec.half = HalfFormat::kBf16;
  const std::vector<double> expected = run(spec).losses, losses = on_host(spec).losses;
  REQUIRE(losses.size() == expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(2e-2));
}

}  // namespace plumb::test
