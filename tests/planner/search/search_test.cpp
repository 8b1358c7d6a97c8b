#include "planner/search/search.h"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/search/fit_advisor.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

const TrainingSpec kShortTraining{.global_batch = 16, .sequence = 256};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the search finds what simulating every layout finds") {
  const ModelSpec model = small_gpt();
  ClusterSpec cluster = round_cluster(8);
  cluster.device.memory_bytes = std::int64_t{1500} << 20;  // so that some do not fit
  Pricing pricing(model, cluster, kShortTraining);
  std::vector<std::pair<SimTime, std::size_t>> all;
  const Enumeration found = enumerate_layouts(model, kShortTraining, cluster.devices, {});
  for (std::size_t i = 0; i < found.layouts.size(); ++i) {
    const Evaluation predicted = evaluate_sums(pricing, found.layouts[i]);
    if (!memory_shortfall(predicted.simulation.peak_memory_bytes, cluster.device)) {
      all.emplace_back(predicted.simulation.makespan, i);
    }
  }
  std::ranges::sort(all);
  REQUIRE(all.size() > 20);
  REQUIRE(all.size() < found.layouts.size());
  const SearchResult result = found_layouts(model, cluster, kShortTraining, {}, {.keep = 7});
  REQUIRE(result.ranked.size() == 7);
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(result.ranked[i].simulation.makespan == all[i].first);
    CHECK(result.ranked[i].layout == found.layouts[all[i].second]);
  }
  CHECK(result.counts.simulated < static_cast<std::int64_t>(all.size()));
}

TEST_CASE("every layout that lost has a reason, and the counts add up") {
  ClusterSpec cluster = round_cluster(4);
  cluster.device.memory_bytes = std::int64_t{1} << 30;
  const SearchResult result = found_layouts(small_gpt(), cluster, kShortTraining, {}, {.keep = 3, .explain = true});
  REQUIRE(result.ranked.size() == 3);
  CHECK(result.counts.enumerated == result.counts.too_large + result.counts.simulated + result.counts.outrun);
  CHECK(static_cast<std::int64_t>(result.rejections.size()) ==
        result.counts.conflicts + result.counts.enumerated - static_cast<std::int64_t>(result.ranked.size()));
  std::int64_t too_large = 0;
  for (const Rejection& rejection : result.rejections) {
    CHECK(!rejection.reason.empty());
    if (!contains(rejection.reason, "lacks")) continue;
    ++too_large;
    CHECK(contains(rejection.reason, "GiB"));
    CHECK(contains(rejection.reason, "fit"));
  }
  CHECK(too_large == result.counts.too_large);
  CHECK(too_large > 0);
}

TEST_CASE("keys that are fixed restrict the search") {
  const SearchResult result =
      found_layouts(small_gpt(), round_cluster(8), kShortTraining,
                    parse_layout("tp=2,zero=1,schedule=interleaved,recompute=full"), {.keep = 100000});
  REQUIRE(!result.ranked.empty());
  for (const Evaluation& ranked : result.ranked) {
    CHECK(ranked.layout.tensor == 2);
    CHECK(ranked.layout.zero == 1);
    CHECK(ranked.layout.schedule == "interleaved");
    CHECK(ranked.layout.recompute == Recompute::kFull);
    CHECK(ranked.layout.data * ranked.layout.pipeline == 4);
  }
}

TEST_CASE("a layout given in full is that layout") {
  const Layout layout{.data = 2, .tensor = 2, .pipeline = 2, .zero = 1, .microbatch = 2, .schedule = "gpipe"};
  const SearchResult result = found_layouts(small_gpt(), round_cluster(8), kShortTraining, request_of(layout), {});
  REQUIRE(result.ranked.size() == 1);
  CHECK(result.ranked[0].layout == layout);
}

TEST_CASE("a schedule with chunks of its own is planned with them, named or not") {
  for (const std::string schedule : {"zb-v", "v-half", "dualpipev"}) {
    CAPTURE(schedule);
    const auto planned = [&](const std::string& chunks) {
      return found_layouts(small_gpt(), round_cluster(8), kShortTraining,
                           parse_layout("pp=2,schedule=" + schedule + chunks), {.keep = 1});
    };
    REQUIRE(planned("").ranked.size() == 1);
    CHECK(planned("").ranked[0].layout.chunks == 2);
    CHECK(planned("").ranked[0].layout == planned(",v=2").ranked[0].layout);
  }
}

TEST_CASE("layouts whose micro-batches enter at both ends are planned, and their bound drops no winner") {
  for (const std::string schedule : {"dualpipe", "chimera"}) {
    CAPTURE(schedule);
    const LayoutRequest request = parse_layout("pp=4,schedule=" + schedule);
    const SearchResult all = found_layouts(small_gpt(), round_cluster(8), kShortTraining, request, {.keep = 100000});
    REQUIRE(all.ranked.size() > 3);
    CHECK(all.counts.outrun == 0);
    const SearchResult best = found_layouts(small_gpt(), round_cluster(8), kShortTraining, request, {.keep = 1});
    REQUIRE(best.ranked.size() == 1);
    CHECK(best.ranked[0].layout == all.ranked[0].layout);
    CHECK(best.ranked[0].simulation.makespan == all.ranked[0].simulation.makespan);
  }
}

TEST_CASE("what cannot exist is infeasible, with the reason") {
  const auto reason = [](const char* request, int devices) {
    const SearchResult result =
        found_layouts(small_gpt(), round_cluster(devices), kShortTraining, parse_layout(request), {});
    CHECK(result.ranked.empty());
    CHECK(!result.rejections.empty());
    return result.infeasible;
  };
  CHECK(contains(reason("tp=16", 16), "8 heads"));
  CHECK(contains(reason("pp=16", 16), "at most 8 stages"));
  CHECK(contains(reason("dp=3", 8), "the devices"));
  CHECK(contains(reason("dp=3,tp=1,pp=1", 8), "product be 8"));
  CHECK(contains(reason("mbs=3", 8), "global batch"));
  CHECK(contains(reason("pp=1,v=2", 8), "pp=1"));
  CHECK(contains(reason("sp=1,tp=1", 8), "sp=0"));
  CHECK(contains(reason("pp=2,split=1:2", 8), "sum up to 8"));
}

TEST_CASE("a model too large for every layout says by how much and what would do") {
  const SearchResult result = found_layouts(preset_model("gpt3-175b"), preset_cluster("a100:8"),
                                            {.global_batch = 64, .sequence = 2048}, {}, {});
  CHECK(result.ranked.empty());
  CHECK(contains(result.infeasible, "no layout fits"));
  CHECK(contains(result.infeasible, "GiB"));
  CHECK(contains(result.infeasible, "device.memory_gib="));
  CHECK(contains(result.infeasible, "devices fit it"));
}

TEST_CASE("the nearest change that fits really fits, and leaves fixed keys alone") {
  const ModelSpec model = preset_model("llama-3-8b");
  Pricing pricing(model, preset_cluster("h100:16"), {.global_batch = 128, .sequence = 8192});
  const Layout large{.data = 16, .microbatch = 2};
  FitAdvisor free(pricing, {});
  REQUIRE(free.shortfall_of(large));
  const std::string advice = free.nearest_change(large);
  REQUIRE(contains(advice, " fits"));
  LayoutRequest changed = request_of(large);
  const LayoutRequest change = parse_layout(advice.substr(0, advice.find(" fits")));
  if (change.zero) changed.zero = change.zero;
  if (change.recompute) changed.recompute = change.recompute;
  if (change.microbatch) changed.microbatch = change.microbatch;
  if (change.tensor) changed.tensor = change.tensor;
  if (change.pipeline) changed.pipeline = change.pipeline;
  if (change.data) changed.data = change.data;
  CHECK(!free.shortfall_of(layout_of(changed)));
  FitAdvisor bound(pricing, request_of(large));
  CHECK(contains(bound.nearest_change(large), "device.memory_gib="));
}

TEST_CASE("the same question has the same answer") {
  const auto text = [] {
    const SearchResult result = found_layouts(small_gpt(), round_cluster(8), kShortTraining, {}, {.explain = true});
    std::string all;
    for (const Evaluation& ranked : result.ranked)
      all += to_text(ranked.layout) + to_json(prediction_of(ranked)).dump();
    for (const Rejection& rejection : result.rejections) all += to_text(rejection.layout) + rejection.reason;
    return all;
  };
  CHECK(text() == text());
}

TEST_CASE("enumeration offers every key and no layout twice") {
  const Enumeration found = enumerate_layouts(small_gpt(), kShortTraining, 8, {});
  std::set<std::string> texts;
  std::set<std::string> schedules;
  for (const Layout& layout : found.layouts) {
    CHECK(texts.insert(to_text(layout)).second);
    schedules.insert(layout.schedule);
    CHECK(layout.data * layout.tensor * layout.pipeline == 8);
  }
  CHECK(schedules == std::set<std::string>{"1f1b", "gpipe", "interleaved"});
  for (const char* part :
       {"zero=3", "sp=1", "recompute=selective", "recompute=full", "mbs=16", "mbs=2,", "tp=8", "pp=8", "v=4"}) {
    CHECK(std::ranges::any_of(texts, [&](const std::string& text) { return contains(text, part); }));
  }
}

TEST_CASE("llama-3-8b on 16 H100s has a plan that fits, at a believable utilization") {
  const ClusterSpec cluster = preset_cluster("h100:16");
  const SearchResult result =
      found_layouts(preset_model("llama-3-8b"), cluster, {.global_batch = 128, .sequence = 8192}, {}, {});
  REQUIRE(!result.ranked.empty());
  const Evaluation& best = result.ranked.front();
  CHECK(!memory_shortfall(best.simulation.peak_memory_bytes, cluster.device));
  CHECK(best.rates.mfu_ratio > 0.3);
  CHECK(best.rates.mfu_ratio < 0.75);
  CHECK(best.rates.tokens_per_second == doctest::Approx(128 * 8192 / step_time(best.simulation).count()));
}

TEST_CASE("a search keeps the stack's headroom of memory free, and a layout that is fixed is judged without") {
  const LayoutRequest request = parse_layout("dp=1,tp=1,pp=1,mbs=1,recompute=none");
  TrainingSpec training = kSmallTraining;
  training.stack = StackSpec{.name = "any"};
  ClusterSpec cluster = round_cluster(1);
  const SearchResult roomy = found_layouts(small_gpt(), cluster, training, request);
  REQUIRE_FALSE(roomy.ranked.empty());
  const std::int64_t peak = roomy.ranked.front().simulation.peak_memory_bytes.front();
  cluster.device.memory_bytes = cluster.device.reserved_bytes + peak + peak / 20;
  CHECK_FALSE(found_layouts(small_gpt(), cluster, training, request).ranked.empty());
  training.stack->memory_headroom = 0.04;
  CHECK_FALSE(found_layouts(small_gpt(), cluster, training, request).ranked.empty());
  training.stack->memory_headroom = 0.06;
  const SearchResult tight = found_layouts(small_gpt(), cluster, training, request);
  CHECK(tight.ranked.empty());
  CHECK(tight.infeasible.find("lacks") != std::string::npos);
}

}  // namespace plumb::test
