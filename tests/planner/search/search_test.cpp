#include "planner/search/search.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <tuple>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/search/bounds.h"
#include "planner/search/layout_tree.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

const TrainingSpec kShortTraining{.global_batch = 16, .sequence = 256};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct TimedLayout {
  SimTime makespan{0};
  Layout layout;
};

/// The best layout of every family that fits, by time, found by simulating every layout on shared links.
std::vector<TimedLayout> every_family(Pricing& pricing, const LayoutSpace& space) {
  std::vector<TimedLayout> all;
  for (const Layout& layout : enumerate_layouts(pricing, space).layouts) {
    const Evaluation evaluation = evaluate(pricing, layout, {.network = NetworkOptions{}});
    if (memory_shortfall(evaluation.simulation.peak_memory_bytes, pricing.cluster().device,
                         pricing.memory_headroom(layout)))
      continue;
    all.push_back({evaluation.simulation.makespan, layout});
  }
  std::ranges::stable_sort(all, {}, &TimedLayout::makespan);
  std::vector<TimedLayout> best;
  for (const TimedLayout& one : all) {
    const auto same = [&](const TimedLayout& row) { return family_of(row.layout) == family_of(one.layout); };
    if (std::ranges::none_of(best, same)) best.push_back(one);
  }
  return best;
}

}  // namespace

TEST_CASE("the rows are those that simulating every layout on shared links finds, on a hundred small spaces") {
  std::mt19937 random(25);
  const auto any = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  int spaces = 0, full = 0, partly = 0;
  while (spaces < 100) {
    ModelSpec model = small_gpt();
    model.layers = any(4, 6, 8);
    model.tied_embeddings = any(0, 1) == 1;
    TrainingSpec training{.global_batch = any(8, 12, 16), .sequence = any(128, 256)};
    if (any(0, 1) == 1) training.stack = StackSpec{.name = "any", .memory_headroom = any(0.0, 0.05)};
    ClusterSpec cluster = round_cluster(any(2, 4, 8));
    cluster.network->bytes_per_second = any(1e9, 10e9);
    cluster.device.memory_bytes = std::int64_t{any(700, 1200, 2400)} << 20;
    Pricing pricing(model, cluster, training);
    const LayoutRequest request = parse_layout(any("recompute=none", "zero=1,mbs=1", "schedule=1f1b,sp=0",
                                                   "tp=2,zero=2", "schedule=interleaved", "zero=3,recompute=full"));
    const std::vector<TimedLayout> all = every_family(pricing, request);
    const std::size_t layouts = enumerate_layouts(pricing, request).layouts.size();
    if (layouts > 100) continue;
    ++spaces;
    partly += !all.empty() && all.size() < 20 ? 1 : 0;
    for (const int keep : {1, 5, 20}) {
      const SearchResult result = search_layouts(pricing, request, {.keep = keep});
      CAPTURE(spaces);
      CAPTURE(keep);
      const std::size_t rows = std::min<std::size_t>(all.size(), static_cast<std::size_t>(keep));
      REQUIRE(result.ranked.size() == rows);
      CHECK(result.infeasible.empty() == !all.empty());
      for (std::size_t row = 0; row < rows; ++row) {
        CHECK(result.ranked[row].simulation.makespan == all[row].makespan);
        CHECK(result.ranked[row].layout == all[row].layout);
      }
      full += result.counts.simulated < static_cast<std::int64_t>(layouts) ? 1 : 0;
    }
  }
  CHECK(partly > 10);  // memory decides in some
  CHECK(full > 200);   // most searches leave layouts out
}

TEST_CASE("the front of memory has every layout that no other beats in both time and memory, on random small spaces") {
  std::mt19937 random(26);
  const auto any = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  std::size_t points = 0, left_out = 0;
  for (int space = 0; space < 30; ++space) {
    CAPTURE(space);
    ModelSpec model = small_gpt();
    model.layers = any(4, 6, 8);
    ClusterSpec cluster = round_cluster(any(2, 4, 8));
    cluster.network->bytes_per_second = any(1e9, 10e9);
    cluster.device.memory_bytes = std::int64_t{any(700, 2400, 9000)} << 20;
    Pricing pricing(model, cluster, {.global_batch = any(8, 12), .sequence = any(128, 256)});
    const LayoutRequest request =
        parse_layout(any("mbs=1", "schedule=1f1b,sp=0", "tp=2", "zero=1", "schedule=interleaved"));
    std::vector<std::tuple<SimTime, std::int64_t>> all;
    for (const Layout& layout : enumerate_layouts(pricing, request).layouts) {
      const Simulation step = evaluate(pricing, layout, {.network = NetworkOptions{}}).simulation;
      if (!memory_shortfall(step.peak_memory_bytes, cluster.device, pricing.memory_headroom(layout)))
        all.emplace_back(step.makespan, std::ranges::max(step.peak_memory_bytes));
    }
    std::ranges::sort(all);
    std::vector<std::tuple<SimTime, std::int64_t>> front;
    for (const auto& one : all)
      if (front.empty() || std::get<std::int64_t>(one) < std::get<std::int64_t>(front.back())) front.push_back(one);
    const SearchResult result = search_layouts(pricing, request, {.memory_front = true});
    std::vector<std::tuple<SimTime, std::int64_t>> found;
    for (const Evaluation& row : result.ranked)
      found.emplace_back(row.simulation.makespan, std::ranges::max(row.simulation.peak_memory_bytes));
    CHECK(found == front);
    points += front.size();
    left_out += all.size() - static_cast<std::size_t>(std::min<std::int64_t>(result.counts.simulated, std::ssize(all)));
  }
  CHECK(points > 60);
  CHECK(left_out > 100);  // memory that is known to be too much drops layouts
}

TEST_CASE("a search finds how many layers of a stage are best rebuilt, as simulating every number does") {
  TrainingSpec training{.global_batch = 16, .sequence = 512};
  training.stack = StackSpec{.name = "any"};
  training.stack->can.recompute_layers = true;
  LayoutSpace space = parse_layout_space("dp=1,tp=1,zero=0,schedule=1f1b,recompute=none|full");
  space.wide = true;
  std::set<int> rebuilt;
  for (const int mebibytes : {4000, 2400, 2000, 1800, 1600, 1400, 1300, 1200, 1100}) {
    CAPTURE(mebibytes);
    ClusterSpec cluster = round_cluster(2);
    cluster.device.memory_bytes = std::int64_t{mebibytes} << 20;
    Pricing pricing(small_gpt(), cluster, training);
    const std::vector<TimedLayout> all = every_family(pricing, space);
    const SearchResult found = search_layouts(pricing, space, {.keep = 5});
    REQUIRE(found.ranked.size() == std::min<std::size_t>(all.size(), 5));
    for (std::size_t row = 0; row < found.ranked.size(); ++row) {
      CHECK(found.ranked[row].simulation.makespan == all[row].makespan);
      CHECK(found.ranked[row].layout == all[row].layout);
      rebuilt.insert(found.ranked[row].layout.recompute_layers);
    }
    space.recompute_layers.named = {2};
    const SearchResult pinned = search_layouts(pricing, space, {.keep = 1});
    space.recompute_layers = {};
    if (!pinned.ranked.empty()) {
      CHECK(pinned.ranked.front().layout.recompute == Recompute::kFull);
      CHECK(pinned.ranked.front().simulation.makespan >= found.ranked.front().simulation.makespan);
    }
  }
  CHECK(rebuilt.size() > 2);  // none or all, and some in between
}

TEST_CASE("more rows are the same rows and others behind them, on ten larger questions") {
  struct Question {
    const char* model;
    const char* cluster;
    std::int64_t global_batch;
    const char* stack;
    const char* pins;
    int rows = 25;
  };
  constexpr std::array kQuestions = {
      Question{"llama-3-8b", "h100:16", 128, "nemo", "", 100},
      Question{"llama-3-8b", "h100:16", 32, "torchtitan", "", 100},
      Question{"llama-2-13b", "l40s:32", 256, "torchtitan", ""},
      Question{"llama-2-7b", "a100:64", 256, "megatron-core", "mbs=1"},
      Question{"llama-2-7b", "a100:32", 128, "fsdp", "", 100},
      Question{"gpt3-175b", "a100:128", 128, "megatron-lm-2022", "mbs=1,sp=1"},
      Question{"gpt3-175b", "v100:512", 128, "megatron-lm-2021", "mbs=1"},
      Question{"mixtral-8x7b", "h100:32", 64, "nemo-moe", "mbs=1"},
      Question{"deepseek-v2", "h100:64", 128, "nemo-moe", "mbs=1,ep=16"},
      Question{"llama-2-70b", "h100:32", 64, "megatron-zero-bubble", "schedule=zb-h1,recompute=full"},
  };
  for (const Question& question : kQuestions) {
    CAPTURE(question.model);
    CAPTURE(question.stack);
    TrainingSpec training{.global_batch = question.global_batch, .sequence = 2048};
    training.stack = parse_stack(source_text(std::string("tools/specs/stacks/") + question.stack + ".json"), "stack");
    if (question.cluster[0] == 'v') training.precision = Precision::kFp16;
    Pricing pricing(preset_model(question.model), preset_cluster(question.cluster), training);
    const LayoutRequest request = parse_layout(question.pins);
    const SearchResult most = search_layouts(pricing, request, {.keep = question.rows});
    REQUIRE(!most.ranked.empty());
    for (const int keep : {1, 5}) {
      const SearchResult fewer = search_layouts(pricing, request, {.keep = keep});
      REQUIRE(std::ssize(fewer.ranked) == std::min<std::ptrdiff_t>(keep, std::ssize(most.ranked)));
      for (std::size_t row = 0; row < fewer.ranked.size(); ++row) {
        CHECK(fewer.ranked[row].layout == most.ranked[row].layout);
        CHECK(fewer.ranked[row].simulation.makespan == most.ranked[row].simulation.makespan);
        CHECK(fewer.variants[row] == most.variants[row]);
      }
    }
  }
}

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
  CHECK(result.counts.enumerated == result.counts.too_large + result.counts.simulated + result.counts.outrun);
  CHECK(result.counts.conflicts == std::ssize(result.conflicts));
  CHECK(std::ssize(result.losers) == result.counts.enumerated - std::ssize(result.ranked));
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

TEST_CASE("layouts whose micro-batches enter at both ends, or in overlapped pairs, lose no winner to their bound") {
  for (const std::string schedule : {"dualpipe", "dualpipev", "chimera", "forward-only"}) {
    CAPTURE(schedule);
    const LayoutRequest request = parse_layout("pp=4,zero=1,schedule=" + schedule);
    Pricing pricing(small_gpt(), round_cluster(8), kShortTraining);
    const std::vector<TimedLayout> all = every_family(pricing, request);
    REQUIRE(all.size() > 3);
    const SearchResult best = search_layouts(pricing, request, {.keep = 2});
    REQUIRE(best.ranked.size() == 2);
    for (std::size_t row = 0; row < 2; ++row) {
      CHECK(best.ranked[row].layout == all[row].layout);
      CHECK(best.ranked[row].simulation.makespan == all[row].makespan);
    }
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
    std::string all = fmt::format("{} {} {} {} {}", counts.opened, counts.enumerated, counts.evaluations, counts.priced,
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

TEST_CASE("more memory, bandwidth or arithmetic never makes the best layout slower") {
  std::mt19937 random(4);
  const auto any = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  const std::array<void (*)(ClusterSpec&), 5> improvements = {
      [](ClusterSpec& cluster) { cluster.device.memory_bytes *= 2; },
      [](ClusterSpec& cluster) { cluster.device.memory_bytes_per_second *= 2; },
      [](ClusterSpec& cluster) { cluster.node_link->bytes_per_second *= 2; },
      [](ClusterSpec& cluster) { cluster.network->bytes_per_second *= 2; },
      [](ClusterSpec& cluster) {
        for (auto& [precision, flops_per_second] : cluster.device.peak_flops_per_second) flops_per_second *= 2;
      },
  };
  int faster = 0;
  for (int draw = 0; draw < 20; ++draw) {
    ClusterSpec cluster = round_cluster(any(4, 8));
    cluster.device.memory_bytes = std::int64_t{any(700, 1200, 2400)} << 20;
    cluster.node_link->bytes_per_second = any(30e9, 100e9);
    cluster.network->bytes_per_second = any(1e9, 10e9);
    const TrainingSpec training{.global_batch = any(8, 16), .sequence = any(128, 512)};
    const auto best = [&](const ClusterSpec& of) {
      const SearchResult found = found_layouts(small_gpt(), of, training, {}, {.keep = 1});
      return found.ranked.empty() ? SimTime::max() : found.ranked.front().simulation.makespan;
    };
    const SimTime before = best(cluster);
    for (std::size_t i = 0; i < improvements.size(); ++i) {
      CAPTURE(draw);
      CAPTURE(i);
      ClusterSpec better = cluster;
      improvements[i](better);
      const SimTime after = best(better);
      CHECK(after <= before);
      faster += after < before ? 1 : 0;
    }
  }
  CHECK(faster > 50);
}

TEST_CASE("enumeration offers every key and no layout twice") {
  Pricing pricing(small_gpt(), round_cluster(8), kShortTraining);
  const Enumeration found = enumerate_layouts(pricing, {});
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
