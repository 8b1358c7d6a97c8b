// Plans over devices of several kinds, or in several places.

#include <algorithm>
#include <array>
#include <random>

#include <doctest/doctest.h>

#include "planner/search/bounds.h"
#include "planner/search/evaluate_plan.h"
#include "planner/search/layout_tree.h"
#include "planner/search/search.h"
#include "planner/spec/cluster_sites.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

const TrainingSpec kBatch{.global_batch = 64, .sequence = 512};
const TrainingSpec kLargeBatch{.global_batch = 128, .sequence = 4096};
const LinkSpec kTenGigabytes{.bytes_per_second = 10e9, .latency = Seconds{1e-3}};

SimTime best_step(const ClusterSpec& cluster, const LayoutRequest& request = {}) {
  Pricing pricing(preset_model("llama-3-8b"), cluster, kLargeBatch);
  const SearchResult found = search_layouts(pricing, request, {.keep = 1});
  REQUIRE(!found.ranked.empty());
  return found.ranked.front().simulation.makespan;
}

}  // namespace

TEST_CASE("two equal sites on one network cost what one cluster of all devices costs") {
  const ClusterSpec one = preset_cluster("h100:16");
  const ClusterSpec both = joined_sites({preset_cluster("h100:8"), preset_cluster("h100:8")}, {});
  const ModelSpec model = preset_model("llama-3-8b");
  const TrainingSpec training{.global_batch = 32, .sequence = 4096};
  Pricing of_one(model, one, training), of_both(model, both, training);
  for (const char* text :
       {"tp=8,pp=2", "tp=4,dp=2,pp=2,zero=1", "tp=2,dp=2,pp=4,sp=1", "dp=8,pp=2,zero=1,recompute=full",
        "tp=8,pp=2,v=2,schedule=interleaved", "tp=4,dp=2,pp=2,schedule=zb-h1"}) {
    Layout layout = layout_of(parse_layout(text));
    layout.split = std::vector<int>(static_cast<std::size_t>(layout.pipeline * layout.chunks),
                                    32 / layout.pipeline / layout.chunks);
    CAPTURE(text);
    const Evaluation a = evaluate(of_one, layout), b = evaluate(of_both, layout);
    CHECK(a.simulation.makespan == b.simulation.makespan);
    CHECK(a.simulation.peak_memory_bytes == b.simulation.peak_memory_bytes);
    CHECK(a.rates.mfu_ratio == doctest::Approx(b.rates.mfu_ratio));
  }
}

TEST_CASE("H100 with A100, and two sites over 10 GB/s, beat each site alone and the even split") {
  for (const std::optional<LinkSpec>& between : {std::optional<LinkSpec>(), std::optional(kTenGigabytes)}) {
    const ClusterSpec h100 = preset_cluster("h100:8"), a100 = preset_cluster("a100:8");
    const ClusterSpec both = joined_sites({h100, a100}, between);
    const SimTime best = best_step(both);
    CHECK(best < best_step(h100));
    CHECK(best < best_step(a100));
    CHECK(best < best_step(both, parse_layout("pp=2,v=1,split=16:16")));
    CHECK(best < best_step(both, parse_layout("pp=4,v=1,split=8:8:8:8")));
  }
}

TEST_CASE("a search over sites finds what simulating every layout finds, on random small spaces") {
  std::mt19937 random(29);
  const auto any = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  int compared = 0, limited = 0;
  for (int space = 0; space < 30; ++space) {
    CAPTURE(space);
    ClusterSpec fast = round_cluster(any(4, 8)), slow = round_cluster(4);
    for (auto& [precision, flops] : slow.device.peak_flops_per_second) flops *= any(0.3, 0.6);
    fast.device.memory_bytes = std::int64_t{any(900, 3000)} << 20;
    slow.device.memory_bytes = std::int64_t{any(500, 1200)} << 20;
    const bool is_far = any(0, 1) == 1;
    const ClusterSpec both = joined_sites({fast, slow}, is_far ? std::optional(kTenGigabytes) : std::nullopt);
    Pricing pricing(small_gpt(), both, {.global_batch = any(8, 16), .sequence = 256});
    const LayoutRequest request = parse_layout(any("recompute=none", "mbs=1", "schedule=1f1b", "zero=1"));
    std::vector<SimTime> all;
    std::size_t too_large = 0;
    for (const Layout& layout : enumerate_layouts(pricing, request).layouts) {
      CHECK(layout.pipeline > 1);  // one pipeline rank cannot lie on both
      const Evaluation one = evaluate(pricing, layout, {.network = NetworkOptions{}});
      CHECK(!one.why_private.empty());
      const bool fits = !memory_shortfall(one.simulation.peak_memory_bytes, both, layout);
      for (std::size_t rank = 0; fits && rank < one.simulation.peak_memory_bytes.size(); ++rank) {
        const DeviceSpec& device = device_of_rank(both, layout, static_cast<int>(rank));
        CHECK(one.simulation.peak_memory_bytes[rank] <= device.memory_bytes - device.reserved_bytes);
      }
      if (fits)
        all.push_back(one.simulation.makespan);
      else
        ++too_large;
    }
    const SearchResult found = search_layouts(pricing, request, {.keep = 1});
    REQUIRE(found.ranked.empty() == all.empty());
    if (all.empty()) continue;
    CHECK(found.ranked.front().simulation.makespan == std::ranges::min(all));
    ++compared;
    limited += too_large > 0 ? 1 : 0;
  }
  CHECK(compared > 20);
  CHECK(limited > 5);
}

TEST_CASE("what several sites do not have is refused in a sentence") {
  const ClusterSpec both = joined_sites({round_cluster(4), round_cluster(4)}, {});
  Pricing pricing(small_gpt(), both, kBatch);
  const Layout layout{.tensor = 4, .pipeline = 2};
  CHECK_THROWS_WITH_AS((void)evaluate(pricing, layout, {.network = NetworkOptions{.replicas = Replicas::kUnfolded}}),
                       doctest::Contains("one site"), SpecError);
  const Plan plan{.model = small_gpt(), .cluster = both, .training = kBatch, .layout = {.data = 8}};
  CHECK(evaluate(plan).infeasible.find("two sites") != std::string::npos);
}

}  // namespace plumb::test
