// Schedules with copies of a stage on a device (DualPipe, Chimera), beside the cpu backend.

#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "executor/run.h"
#include "schedules/error.h"
#include "tests/executor/device/host_run.h"

using namespace plumb;
using namespace plumb::test;

namespace {

RunSpec bidirectional(const std::vector<Layer>& model, const std::string& name, int replicas, int zero) {
  const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 4});
  RunSpec spec = spec_of_lowered(model, lower(order, {.data = {.enabled = true, .zero = zero}}), replicas);
  spec.zero = zero;
  spec.steps = 2;
  return spec;
}

void check_beside_cpu(const RunSpec& spec) {
  const RunResult cpu = run(spec, {.capture_gradients = true}), device = on_host(spec);
  check_losses(device, cpu, 1e-6);
  CHECK(worst_difference(device.gradients[0], cpu.gradients[0]) < 1e-5);
  CHECK(device.parameter_bytes == cpu.parameter_bytes);
  const RunResult other = on_host(spec, 5);
  CHECK(other.losses == device.losses);
  CHECK(other.weights == device.weights);
}

}  // namespace

TEST_CASE("copies of a stage in one schedule train as the CPU's: one sum over lanes and replicas, and ZeRO's shares") {
  for (const std::string name : {"chimera", "dualpipe"})
    for (const int zero : {0, 1, 2, 3}) {
      CAPTURE(name);
      CAPTURE(zero);
      check_beside_cpu(bidirectional(untied_gpt_model(), name, zero % 2 == 0 ? 1 : 2, zero));
    }
}

TEST_CASE("with tied tables at both ends, clipped gradients and tensor groups too") {
  for (const int zero : {0, 1, 2}) {
    CAPTURE(zero);
    RunSpec spec = bidirectional(gpt_model(), "chimera", 1, zero);
    check_beside_cpu(spec);
    spec.clip_norm = 0.5;
    if (zero < 2) spec.grid.tensor = 2;
    check_beside_cpu(spec);
  }
}

TEST_CASE("layer by layer copies of a stage in one schedule do not meet on a device, and are refused") {
  RunSpec spec = bidirectional(untied_gpt_model(), "chimera", 1, 3);
  spec.layerwise = true;
  CHECK_THROWS_AS(on_host(spec), SpecError);
}
