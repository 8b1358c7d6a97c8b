#include "planner/price/memory/device_memory.h"

#include <doctest/doctest.h>

#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/evaluate/priced_layout.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

/// Returns the memory of the first stage.
StageMemory memory_on(const ClusterSpec& cluster, const Layout& layout) {
  Pricing pricing(small_gpt(), cluster, kSmallTraining);
  return price_layout(pricing, layout, order_of(kSmallTraining, layout)).kinds.stages.front().memory;
}

/// Returns a GPU that was calibrated with Plumb's own kernels.
ClusterSpec calibrated(int devices) {
  ClusterSpec cluster = round_cluster(devices);
  cluster.samples.push_back({.kernel = "gemm",
                             .shape = {512, 512, 512, 1, static_cast<std::int64_t>(GemmForm::kForwardBias)},
                             .median = Seconds{1e-5}});
  return cluster;
}

std::vector<DeviceFootprint> footprints(const Layout& layout) {
  std::vector<DeviceFootprint> result;
  for (const Layer& layer : model_layers(small_gpt()))
    result.push_back(device_footprint(layer, kSmallTraining, work_of(kSmallTraining, layout)));
  return result;
}

void check_activations(const StageMemory& one, const StageMemory& other) {
  CHECK(one.forward_bytes == other.forward_bytes);
  CHECK(one.recompute_bytes == other.recompute_bytes);
  CHECK(one.forward_workspace_bytes == other.forward_workspace_bytes);
  CHECK(one.backward_workspace_bytes == other.backward_workspace_bytes);
}

}  // namespace

TEST_CASE("a calibrated GPU's memory is that of its own executor, any other cluster's that of saved tensors") {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    const Layout layout{.microbatch = 4, .recompute = recompute};
    const StageMemory device = memory_on(calibrated(1), layout), other = memory_on(round_cluster(1), layout);
    check_activations(device, device_activations(footprints(layout), recompute, {}));
    check_activations(other, stage_memory(model_layers(small_gpt()), kSmallTraining, layout, {}));
    CHECK(device.parameter_bytes == other.parameter_bytes);
    CHECK(device.gradient_bytes == other.gradient_bytes);
    CHECK(device.optimizer_bytes == other.optimizer_bytes);
  }
}

TEST_CASE("a device that shares state has the whole of a stage's gradients beside its shards, and of its weights") {
  const Layout whole{.data = 4, .microbatch = 1};
  Layout sharded = whole;
  sharded.zero = 3;
  const StageMemory all = memory_on(calibrated(4), whole), shards = memory_on(calibrated(4), sharded);
  CHECK(shards.backward_workspace_bytes - all.backward_workspace_bytes == all.gradient_bytes);
  CHECK(shards.unsharded_bytes == all.parameter_bytes);
}

TEST_CASE("a context group's memory is counted as everyone's") {
  const Layout layout{.context = 2, .microbatch = 4};
  check_activations(memory_on(calibrated(2), layout), memory_on(round_cluster(2), layout));
}

}  // namespace plumb::test
