// Mamba-2's blocks on a device against the cpu backend's.

#include "executor/layers/device/mamba2_step.h"

#include <doctest/doctest.h>

#include "executor/layers/device/device_layer.h"
#include "schedules/error.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

RunSpec with_states(const char* name, int tensor = 1) {
  RunSpec spec = spec_of(mamba2_model(), make_schedule(name, {.ranks = 2, .microbatches = 2}));
  spec.grid.tensor = tensor;
  spec.sequence = 8;
  spec.steps = 2;  // gradients are 1e-6 apart in the first, and 1e-4 in the third
  spec.optimizer = smooth_adamw();
  return spec;
}

}  // namespace

TEST_CASE("Mamba-2 on a device gives the cpu's losses and gradients, whole and on tensor ranks") {
  for (const char* name : {"1f1b", "zb-h1"}) {
    INFO(name);
    check_beside_cpu_in_any_order(with_states(name));
  }
  for (const bool sequence_parallel : {false, true}) {
    RunSpec spec = with_states("1f1b", 2);
    spec.sequence_parallel = sequence_parallel;
    check_beside_cpu(spec);
  }
}

TEST_CASE("hybrids of attention and Mamba-2 on a device give the cpu's losses and gradients") {
  for (const int tensor : {1, 2}) {
    CAPTURE(tensor);
    RunSpec spec = with_states("1f1b", tensor);
    spec.stage_layers = spec_of(hybrid_model(), make_schedule("1f1b", {.ranks = 2, .microbatches = 2})).stage_layers;
    check_beside_cpu(spec);
  }
}

TEST_CASE("Mamba-2 on a device computes activations again to the same bits, and runs in 16 bits") {
  check_rebuilt_and_in_16_bits(with_states("1f1b"));
}

TEST_CASE("a device refuses Mamba-2 in slices of sequences, and convolutions over too many tokens") {
  RunSpec spec = with_states("1f1b");
  CHECK_NOTHROW(require_device_runnable(spec));
  spec.schedule = lower(make_schedule("seq1f1b", {.ranks = 2, .microbatches = 2, .slices = 2}), {});
  CHECK_THROWS_WITH_AS(require_device_runnable(spec), doctest::Contains("Mamba-2's blocks in slices of sequences"),
                       SpecError);
  TransformerLayer wide = mamba2_block();
  std::get<Mamba2Mixer>(wide.states).taps = 8;
  CHECK(has_device_kernels(wide));
  std::get<Mamba2Mixer>(wide.states).taps = 9;
  CHECK(!has_device_kernels(wide));
}

}  // namespace plumb::test
