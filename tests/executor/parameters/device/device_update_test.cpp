#include "executor/parameters/device/device_update.h"

#include <doctest/doctest.h>

#include <vector>

#include "executor/training/device/run_device.h"
#include "executor/training/run.h"
#include "tests/executor/machines/host_machine.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {

TEST_CASE("a device trains with SGD and momentum as the CPU does, clipped or not, in synchronous and other schedules") {
  for (const char* name : {"1f1b", "pipedream"})
    for (const double clip : {0.0, 0.05}) {
      if (clip > 0 && std::string_view(name) == "pipedream") continue;  // its ranks cannot agree before their steps
      INFO(name << ", clip " << clip);
      RunSpec spec = spec_of(llama_model(), make_schedule(name, {.ranks = 3, .microbatches = 5}));
      spec.steps = 3;
      spec.clip_norm = clip;
      spec.optimizer = Sgd{.learning_rate = 0.05F, .momentum = 0.8F, .weight_decay = 0.1F};
      HostMachine machine;
      const RunResult cpu = run(spec, {.capture_gradients = true, .capture_weights = true}),
                      device = run_device(spec, machine, {.capture_gradients = true, .capture_weights = true});
      for (std::size_t i = 0; i < cpu.losses.size(); ++i)
        CHECK(device.losses[i] == doctest::Approx(cpu.losses[i]).epsilon(1e-5));
      CHECK(worst_difference(device.gradients.back(), cpu.gradients.back()) < 1e-3);
      CHECK(worst_difference(device.weights, cpu.weights) < 1e-4);
      CHECK(device.parameter_bytes == cpu.parameter_bytes);
    }
}

TEST_CASE("a device trains with Lion as the CPU does") {
  RunSpec spec = spec_of(llama_model(), make_schedule("zb-h1", {.ranks = 2, .microbatches = 4}));
  spec.steps = 2;
  spec.optimizer = Lion{};
  HostMachine machine;
  const RunResult cpu = run(spec), device = run_device(spec, machine);
  // The sign of a gradient next to 0 may differ: of so small steps the losses show it last.
  for (std::size_t i = 0; i < cpu.losses.size(); ++i)
    CHECK(device.losses[i] == doctest::Approx(cpu.losses[i]).epsilon(1e-5));
  CHECK(device.parameter_bytes == cpu.parameter_bytes);
}

namespace {

/// Adafactor and 8-bit AdamW, which need whole tensors.
std::vector<OptimizerSettings> tensor_optimizers() {
  return {AdamW8Bit{.adamw = smooth_adamw()}, Adafactor{.learning_rate = 0.02F, .weight_decay = 0.1F}};
}

/// Blocks whose experts' parameters are stacks of matrices.
RunSpec whole_tensor_spec(const OptimizerSettings& optimizer, const char* schedule = "zb-h1") {
  RunSpec spec = spec_of(mixtral_model(), make_schedule(schedule, {.ranks = 2, .microbatches = 4}));
  spec.steps = 3;
  spec.optimizer = optimizer;
  return spec;
}

}  // namespace

TEST_CASE("a device trains with 8-bit AdamW and with Adafactor as the CPU does, clipped or not, and keeps as much") {
  for (const OptimizerSettings& optimizer : tensor_optimizers())
    for (const double clip : {0.0, 0.05}) {
      INFO("optimizer " << optimizer.index() << ", clip " << clip);
      RunSpec spec = whole_tensor_spec(optimizer);
      spec.clip_norm = clip;
      const RunResult cpu = run(spec, {.capture_gradients = true, .capture_weights = true}), device = on_host(spec);
      check_losses(device, cpu, 1e-4);
      CHECK(worst_difference(device.gradients.front(), cpu.gradients.front()) < 1e-3);
      CHECK(worst_difference(device.weights, cpu.weights) < 1e-2);
      CHECK(device.parameter_bytes == cpu.parameter_bytes);
    }
}

TEST_CASE("8-bit AdamW and Adafactor on a device: the same bits whatever the schedule and the order of calls") {
  for (const OptimizerSettings& optimizer : tensor_optimizers()) {
    INFO("optimizer " << optimizer.index());
    const RunResult first = on_host(whole_tensor_spec(optimizer, "1f1b"));
    CHECK(on_host(whole_tensor_spec(optimizer, "zb-h1"), 7).weights == first.weights);
    CHECK(on_host(whole_tensor_spec(optimizer, "gpipe"), 8).weights == first.weights);
  }
}

TEST_CASE("8-bit AdamW and Adafactor on a device in 16 bits, of replicas, and in a schedule of several steps") {
  for (const OptimizerSettings& optimizer : tensor_optimizers()) {
    for (const HalfFormat half : {HalfFormat::kBf16, HalfFormat::kFp16}) {
      INFO("optimizer " << optimizer.index() << ", fp16 " << (half == HalfFormat::kFp16));
      const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
      RunSpec spec = spec_of_lowered(tied_llama_model(), lower(order, {.data = {.enabled = true}}), 2);
      spec.half = half;
      spec.steps = 3;
      spec.optimizer = optimizer;
      spec.clip_norm = half == HalfFormat::kBf16 ? 0.5 : 0;
      const RunResult cpu = run(spec), device = on_host(spec, 3);
      check_losses(device, cpu, 2e-2);
      CHECK(device.parameter_bytes == cpu.parameter_bytes);
      CHECK(device.skipped_steps == cpu.skipped_steps);
    }
    RunSpec several = spec_of(llama_model(), make_schedule("pipedream", {.ranks = 2, .microbatches = 4}));
    several.optimizer = optimizer;
    several.steps = 2;
    check_losses(on_host(several), run(several), 1e-4);
  }
}

TEST_CASE("what an update reads: bias corrections, the decay of Adafactor, the maps of codes") {
  CHECK(update_numbers(AdamW{.beta1 = 0.5F}, 2).first_correction == 0.75F);
  CHECK(update_numbers(AdamW8Bit{.adamw = {.beta2 = 0.5F}}, 3).second_correction == 0.875F);
  CHECK(update_numbers(Lion{}, 2).first_correction == 1);
  CHECK(update_numbers(Adafactor{.decay_exponent = 0.5F}, 1).fresh_share == 1);
  CHECK(update_numbers(Adafactor{.decay_exponent = 0.5F}, 16).fresh_share == 0.25F);
  CHECK(update_constants(AdamW{}).empty());
  const std::vector<float> maps = update_constants(AdamW8Bit{});
  REQUIRE(maps.size() == 512);
  CHECK(maps[0] == -maps[254]);
  CHECK(maps[256] == 0);
}

}  // namespace plumb::test
