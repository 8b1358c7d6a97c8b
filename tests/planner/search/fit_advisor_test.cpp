#include "planner/search/fit_advisor.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("the nearest change that fits really fits, and leaves fixed keys alone") {
  const ModelSpec model = preset_model("llama-3-8b");
  Pricing pricing(model, preset_cluster("h100:16"), {.global_batch = 128, .sequence = 8192});
  const Layout large{.data = 16, .microbatch = 2};
  FitAdvisor free(pricing, {});
  REQUIRE(HeldBytes(pricing).shortfall(large));
  const std::string advice = free.nearest_change(large);
  REQUIRE(advice.ends_with(" fits"));
  LayoutRequest changed = request_of(large);
  const LayoutRequest change = parse_layout(advice.substr(0, advice.find(" fits")));
  if (change.zero) changed.zero = change.zero;
  if (change.recompute) changed.recompute = change.recompute;
  if (change.microbatch) changed.microbatch = change.microbatch;
  if (change.tensor) changed.tensor = change.tensor;
  if (change.pipeline) changed.pipeline = change.pipeline;
  if (change.data) changed.data = change.data;
  CHECK(!HeldBytes(pricing).shortfall(layout_of(changed)));
  FitAdvisor bound(pricing, request_of(large));
  CHECK(bound.nearest_change(large).find("device.memory_gib=") != std::string::npos);
}

TEST_CASE("where no change of one key fits, the fewest changes that do are advised") {
  ClusterSpec cluster = round_cluster(1);
  Pricing roomy(small_gpt(), cluster, {.global_batch = 16, .sequence = 256});
  const Layout large{.microbatch = 16};
  const auto peak = [&](const std::string& keys) {
    Layout layout = large;
    const LayoutRequest request = parse_layout(keys);
    layout.microbatch = request.microbatch.value_or(layout.microbatch);
    layout.recompute = request.recompute.value_or(layout.recompute);
    return std::ranges::max(HeldBytes(roomy).of(layout));
  };
  REQUIRE(peak("recompute=full,mbs=8") < std::min(peak("recompute=full"), peak("mbs=8")));
  cluster.device.memory_bytes = cluster.device.reserved_bytes + peak("recompute=full,mbs=8");
  Pricing tight(small_gpt(), cluster, roomy.training());
  FitAdvisor advisor(tight, parse_layout_space("mbs=16|8"));
  CHECK(advisor.nearest_change(large) == "recompute=full,mbs=8 fits");
}

TEST_CASE("a layout whose activations leave too slowly is not advised in its own place") {
  const ModelSpec model = small_gpt();
  ClusterSpec cluster = round_cluster(4);
  cluster.host = {
      .memory_bytes = std::int64_t{64} << 30, .memory_bytes_per_second = 100e9, .device_bytes_per_second = 1e8};
  Layout layout = layout_of(parse_layout("dp=1,pp=4,mbs=4,recompute=none,schedule=1f1b"));
  layout.offload.activations = true;
  const TrainingSpec training{.global_batch = 64, .sequence = 512};
  Pricing roomy(model, cluster, training);
  const std::int64_t in_issue_order = std::ranges::max(HeldBytes(roomy).of(layout));
  cluster.device.memory_bytes = cluster.device.reserved_bytes + in_issue_order + (1 << 20);
  Pricing tight(model, cluster, training);
  FitAdvisor bound(tight, request_of(layout));
  REQUIRE(HeldBytes(tight).shortfall(layout));
  CHECK(bound.nearest_change(layout).find("would fit " + to_text(layout)) != std::string::npos);
}

}  // namespace plumb::test
