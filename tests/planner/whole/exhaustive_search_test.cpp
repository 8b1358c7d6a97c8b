// A search answers what simulating every layout on shared links answers.

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "planner/search/bounds.h"
#include "planner/search/layout_tree.h"
#include "planner/search/search.h"
#include "tests/planner/fixtures.h"
#include "tests/sanitized.h"

namespace plumb::test {
namespace {

const TrainingSpec kSmallBatch{.global_batch = 16, .sequence = 256};

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

TEST_CASE("the rows are those that simulating every layout on shared links finds, on a hundred small spaces" *
          doctest::skip(kIsSanitized)) {
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

TEST_CASE("the rows of a wide space are those that simulating every layout finds, on random spaces") {
  std::mt19937 random(27);
  const auto any = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  int spaces = 0, unusual = 0, unheld = 0;
  while (spaces < 12) {
    ModelSpec model = small_gpt();
    model.layers = any(4, 6);
    TrainingSpec training{.global_batch = any(8, 12), .sequence = any(128, 256)};
    if (any(0, 1) == 1) {
      training.stack = StackSpec{.name = "any"};
      training.stack->can.recompute_layers = training.stack->can.shard_groups = true;
    }
    ClusterSpec cluster = round_cluster(any(4, 8));
    cluster.host = preset_cluster("a100:8").host;
    cluster.device.memory_bytes = std::int64_t{any(250, 350, 500, 1200)} << 20;
    Pricing pricing(model, cluster, training);
    LayoutSpace space = parse_layout_space(any("pp=2,mbs=1,schedule=1f1b|zb-h1", "pp=2,mbs=1,schedule=interleaved",
                                               "tp=2,zero=1|2,recompute=full", "dp=4,mbs=1,zero=1,sp=0"));
    space.wide = true;
    const std::vector<Layout> layouts = enumerate_layouts(pricing, space).layouts;
    if (layouts.size() > 500) continue;
    ++spaces;
    CAPTURE(spaces);
    CAPTURE(to_text(space));
    LayoutSpace usual = space;
    usual.wide = false;
    const std::vector<TimedLayout> all = every_family(pricing, space);
    for (const int keep : {1, 3}) {
      CAPTURE(keep);
      const SearchResult result = search_layouts(pricing, space, {.keep = keep});
      REQUIRE(result.ranked.size() == std::min<std::size_t>(all.size(), static_cast<std::size_t>(keep)));
      for (std::size_t row = 0; row < result.ranked.size(); ++row) {
        CHECK(result.ranked[row].simulation.makespan == all[row].makespan);
        CHECK(result.ranked[row].layout == all[row].layout);
      }
      const SearchResult practice = search_layouts(pricing, usual, {.keep = 1});
      if (!result.ranked.empty())
        unusual += practice.ranked.empty() || practice.ranked.front().layout != result.ranked.front().layout ? 1 : 0;
      unheld += result.counts.priced < std::ssize(layouts) ? 1 : 0;
    }
  }
  CHECK(unheld > 6);
  CHECK(unusual > 2);  // besides the usual space
}

TEST_CASE("layouts whose micro-batches enter at both ends, or in overlapped pairs, lose no winner to their bound") {
  for (const std::string schedule : {"dualpipe", "dualpipev", "chimera", "forward-only"}) {
    CAPTURE(schedule);
    const LayoutRequest request = parse_layout("pp=4,zero=1,schedule=" + schedule);
    Pricing pricing(small_gpt(), round_cluster(8), kSmallBatch);
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

TEST_CASE("more rows are the same rows and others behind them, on eleven larger questions" *
          doctest::skip(kIsSanitized)) {
  struct Question {
    const char* model;
    const char* cluster;
    std::int64_t global_batch;
    const char* stack;
    const char* pins;
    int rows = 100;
  };
  constexpr std::array kQuestions = {
      Question{"llama-3-8b", "h100:16", 128, "nemo", ""},
      Question{"llama-3-8b", "h100:16", 32, "torchtitan", ""},
      Question{"llama-2-13b", "l40s:32", 256, "torchtitan", "", 25},
      Question{"llama-2-13b", "a100:32", 256, "megatron-deepspeed", ""},
      Question{"llama-2-7b", "a100:64", 256, "megatron-core", "mbs=1"},
      Question{"llama-2-7b", "a100:32", 128, "fsdp", ""},
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

}  // namespace plumb::test
