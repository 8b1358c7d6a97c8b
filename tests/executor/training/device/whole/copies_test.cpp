// Schedules with copies of a stage on a device (DualPipe, Chimera), beside the cpu backend.

#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "executor/training/run.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

RunSpec bidirectional(const std::vector<Layer>& model, const std::string& name, int replicas, int zero) {
  const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 4});
  RunSpec spec = spec_of_lowered(model, lower(order, {.data = {.enabled = true, .zero = zero}}), replicas);
  spec.zero = zero;
  spec.steps = 2;
  return spec;
}

}  // namespace

TEST_CASE("copies of a stage in one schedule train as the CPU's: one sum over lanes and replicas, and ZeRO's shares") {
  for (const std::string name : {"chimera", "dualpipe"})
    for (const int zero : {0, 1, 2, 3}) {
      CAPTURE(name);
      CAPTURE(zero);
      check_shares_beside_cpu(bidirectional(untied_gpt_model(), name, zero % 2 == 0 ? 1 : 2, zero));
    }
}

TEST_CASE("with tied tables at both ends, clipped gradients and tensor groups too") {
  for (const int zero : {0, 1, 2}) {
    CAPTURE(zero);
    RunSpec spec = bidirectional(gpt_model(), "chimera", 1, zero);
    check_shares_beside_cpu(spec);
    spec.clip_norm = 0.5;
    if (zero < 2) spec.grid.tensor = 2;
    check_shares_beside_cpu(spec);
  }
}

TEST_CASE("layer by layer copies of a stage in one schedule meet in their passes") {
  for (const std::string name : {"chimera", "dualpipe"})
    for (const int zero : {2, 3})
      for (const int replicas : {1, 2}) {
        CAPTURE(name);
        CAPTURE(zero);
        CAPTURE(replicas);
        RunSpec spec = bidirectional(untied_gpt_model(), name, replicas, zero);
        spec.layerwise = true;
        check_shares_beside_cpu(spec);
        if (replicas == 1) continue;
        spec.clip_norm = 0.5;
        spec.rebuild = Recompute::kStage;
        check_shares_beside_cpu(spec);
      }
}

TEST_CASE("with tied tables at both ends, in tensor groups and in 16 bits too") {
  RunSpec spec = bidirectional(gpt_model(), "chimera", 1, 3);
  spec.layerwise = true;
  spec.grid.tensor = 2;
  check_shares_beside_cpu(spec);
  spec.half = HalfFormat::kBf16;
  check_losses(on_host(spec), run(spec), 5e-3);
}

}  // namespace plumb::test
