#include "executor/device/stage/device_update.h"

#include <doctest/doctest.h>

#include <vector>

#include "executor/device/run_device.h"
#include "executor/run.h"
#include "tests/executor/device/host_machine.h"
#include "tests/executor/small_model.h"

using namespace plumb;
using namespace plumb::test;

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

TEST_CASE("which optimizers a device has, and the state that they keep of an element") {
  CHECK(has_device_update(AdamW{}));
  CHECK_FALSE(has_device_update(AdamW8Bit{}));
  CHECK_FALSE(has_device_update(Adafactor{}));
  CHECK(moments_of(AdamW{}) == 2);
  CHECK(moments_of(Sgd{}) == 1);
  CHECK(moments_of(Lion{}) == 1);
  CHECK(update_numbers(AdamW{.beta1 = 0.5F}, 2).first_correction == 0.75F);
  CHECK(update_numbers(Lion{}, 2).first_correction == 1);
}
