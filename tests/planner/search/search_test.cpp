#include "planner/search/search.h"

#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/search/bounds.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

const TrainingSpec kShortTraining{.global_batch = 16, .sequence = 256};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("variants are members of the row's family that take nearly the same") {
  const SearchResult result = found_layouts(small_gpt(), round_cluster(8), kShortTraining, {}, {.keep = 6});
  REQUIRE(result.variants.size() == result.ranked.size());
  Pricing pricing(small_gpt(), round_cluster(8), kShortTraining);
  std::size_t variants = 0;
  for (std::size_t row = 0; row < result.ranked.size(); ++row) {
    for (std::size_t other = 0; other < row; ++other)
      CHECK(family_of(result.ranked[row].layout) != family_of(result.ranked[other].layout));
    for (const Layout& variant : result.variants[row]) {
      ++variants;
      CHECK(family_of(variant) == family_of(result.ranked[row].layout));
      CHECK(variant != result.ranked[row].layout);
      const double ratio = to_seconds(evaluate_sums(pricing, variant).simulation.makespan) /
                           to_seconds(result.ranked[row].simulation.makespan);
      CHECK(ratio <= 1 + kNearlyTheSame);
    }
  }
  CHECK(variants > 0);
}

TEST_CASE("every layout that lost has a reason, and the counts add up") {
  ClusterSpec cluster = round_cluster(4);
  cluster.device.memory_bytes = std::int64_t{1} << 30;
  const SearchResult result = found_layouts(small_gpt(), cluster, kShortTraining, {}, {.keep = 3, .explain = true});
  REQUIRE(result.ranked.size() == 3);
  CHECK(result.counts.priced == result.counts.too_large + result.counts.simulated + result.counts.outrun);
  CHECK(result.counts.conflicts == std::ssize(result.conflicts));
  CHECK(std::ssize(result.losers) == result.counts.priced - std::ssize(result.ranked));
  std::int64_t too_large = 0;
  for (const Rejection& rejection : result.losers) {
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

TEST_CASE("what cannot exist is infeasible, with the reason") {
  const auto reason = [](const char* request, int devices) {
    const SearchResult result =
        found_layouts(small_gpt(), round_cluster(devices), kShortTraining, parse_layout(request), {});
    CHECK(result.ranked.empty());
    CHECK(!result.conflicts.empty());
    return result.infeasible;
  };
  CHECK(contains(reason("tp=16", 16), "8 heads"));
  CHECK(contains(reason("pp=16", 16), "at most 8 stages"));
  CHECK(contains(reason("dp=3,tp=1,pp=1", 8), "product be 8"));
  CHECK(contains(reason("mbs=3", 8), "global batch"));
  CHECK(contains(reason("pp=1,v=2", 8), "pp=1"));
  CHECK(contains(reason("sp=1,tp=1", 8), "sp=0"));
  CHECK(contains(reason("recompute_layers=2", 8), "own executor rebuilds all layers"));
  CHECK(contains(reason("pp=2,split=1:2", 8), "sum up to 8"));
  CHECK(contains(found_layouts(small_gpt(), round_cluster(8), kShortTraining, parse_layout("dp=3"), {}).infeasible,
                 "the 8 devices has dp=3"));  // no rule is broken, and no layout is there
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

TEST_CASE("the same question has the same answer on any number of threads, also where a budget ends it") {
  const auto text = [](int threads, std::int64_t most_evaluations) {
    const SearchResult result =
        found_layouts(small_gpt(), round_cluster(8), kShortTraining, {},
                      {.threads = threads, .explain = true, .most_evaluations = most_evaluations});
    const SearchCounts& counts = result.counts;
    std::string all = fmt::format("{} {} {} {} {}", counts.opened, counts.priced, counts.evaluations, counts.too_large,
                                  counts.simulated);
    if (result.stopped_at) all += fmt::format(", stopped at {}", *result.stopped_at);
    for (std::size_t row = 0; row < result.ranked.size(); ++row) {
      all += to_text(result.ranked[row].layout) + to_json(prediction_of(result.ranked[row])).dump();
      for (const Layout& variant : result.variants[row]) all += to_text(variant);
    }
    for (const Rejection& rejection : result.losers) all += to_text(rejection.layout) + rejection.reason;
    for (const Rejection& rejection : result.conflicts) all += to_text(rejection.layout) + rejection.reason;
    return all;
  };
  for (const std::int64_t most_evaluations : {0, 1, 7, 100, 1000}) {
    CAPTURE(most_evaluations);
    const std::string once = text(1, most_evaluations);
    for (const int threads : {1, 2, 5}) CHECK(text(threads, most_evaluations) == once);
  }
}

TEST_CASE("a wide space has the same answer on any number of threads, also where a budget ends the search") {
  LayoutSpace space = parse_layout_space("pp=2|4,mbs=1|2,zero=1");
  space.wide = true;
  ClusterSpec cluster = round_cluster(8);
  cluster.host = preset_cluster("a100:8").host;
  cluster.device.memory_bytes = std::int64_t{600} << 20;
  const auto text = [&](int threads, std::int64_t most_evaluations) {
    Pricing pricing(small_gpt(), cluster, kShortTraining);
    const SearchResult result =
        search_layouts(pricing, space, {.threads = threads, .keep = 3, .most_evaluations = most_evaluations});
    std::string all = fmt::format("{} {}", result.counts.evaluations, result.stopped_at.value_or(0));
    for (std::size_t row = 0; row < result.ranked.size(); ++row) {
      all += fmt::format(" {} {}", to_text(result.ranked[row].layout), result.values[row]);
      for (const Layout& variant : result.variants[row]) all += to_text(variant);
    }
    return all;
  };
  for (const std::int64_t most_evaluations : {0, 5, 40}) {
    CAPTURE(most_evaluations);
    const std::string once = text(1, most_evaluations);
    for (const int threads : {2, 5}) CHECK(text(threads, most_evaluations) == once);
  }
}

TEST_CASE("a wide search that a budget ends has the best rows of the usual space and of its own, a family once") {
  LayoutSpace space = parse_layout_space("schedule=1f1b|zb-h1,zero=1");
  space.wide = true;
  Pricing pricing(small_gpt(), round_cluster(8), kShortTraining);
  LayoutSpace usual = space;
  usual.wide = false;
  const SearchResult whole = search_layouts(pricing, usual, {.keep = 4});
  REQUIRE(whole.ranked.size() == 4);
  for (const std::int64_t more : {1, 10, 40}) {
    const SearchResult part =
        search_layouts(pricing, space, {.keep = 4, .most_evaluations = whole.counts.evaluations + more});
    CAPTURE(more);
    REQUIRE(part.ranked.size() == 4);
    REQUIRE(part.variants.size() == 4);
    CHECK(std::ranges::is_sorted(part.values));
    for (std::size_t row = 0; row < 4; ++row) {
      CHECK(part.values[row] <= whole.values[row]);
      for (std::size_t other = 0; other < row; ++other)
        CHECK(family_of(part.ranked[row].layout) != family_of(part.ranked[other].layout));
    }
  }
}

TEST_CASE("a search that a budget ends takes no more evaluations, and says below what no better layout lies") {
  Pricing pricing(small_gpt(), round_cluster(8), kShortTraining);
  const SearchResult whole = search_layouts(pricing, {}, {.keep = 1});
  REQUIRE(!whole.ranked.empty());
  REQUIRE(whole.counts.evaluations > 50);
  for (const std::int64_t most_evaluations : {1, 20, 50}) {
    const SearchResult part = search_layouts(pricing, {}, {.keep = 1, .most_evaluations = most_evaluations});
    REQUIRE(part.stopped_at);
    CHECK(part.counts.evaluations_until_stop == most_evaluations);
    CHECK(*part.stopped_at <= seconds(whole.ranked.front().simulation.makespan));
    REQUIRE(!part.ranked.empty());
    CHECK(part.ranked.front().simulation.makespan >= whole.ranked.front().simulation.makespan);
  }
}

TEST_CASE("the order in which keys and values are named changes nothing") {
  Pricing pricing(small_gpt(), round_cluster(8), kShortTraining);
  const SearchResult one = search_layouts(pricing, parse_layout_space("tp=2|4,zero=0|1,schedule=gpipe|1f1b,mbs=1|2"));
  const SearchResult other = search_layouts(pricing, parse_layout_space("mbs=2|1,schedule=1f1b|gpipe,zero=1|0,tp=4|2"));
  REQUIRE(!one.ranked.empty());
  REQUIRE(one.ranked.size() == other.ranked.size());
  for (std::size_t row = 0; row < one.ranked.size(); ++row) {
    CHECK(one.ranked[row].layout == other.ranked[row].layout);
    CHECK(one.ranked[row].simulation.makespan == other.ranked[row].simulation.makespan);
    CHECK(one.variants[row] == other.variants[row]);
  }
  CHECK(one.counts == other.counts);
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

TEST_CASE("a search lists the layouts whose step and memory it learned, each row among them") {
  const SearchResult result =
      found_layouts(small_gpt(), round_cluster(8), kShortTraining, {}, {.keep = 3, .list_learned = true});
  CHECK(std::ssize(result.learned) >= std::ssize(result.ranked));
  for (const Evaluation& row : result.ranked) {
    CHECK(std::ranges::any_of(result.learned, [&](const LearnedLayout& one) {
      return one.on_shared_links && one.fits && one.time == row.simulation.makespan &&
             one.peak_bytes == std::ranges::max(row.simulation.peak_memory_bytes);
    }));
  }
  CHECK(found_layouts(small_gpt(), round_cluster(8), kShortTraining, {}, {.keep = 3}).learned.empty());
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
