#include "planner/search/memory_bound.h"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "planner/search/held_bytes.h"
#include "planner/search/layout_tree.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

struct MemoryQuestion {
  const char* model;
  const char* cluster;
  const char* stack;  ///< empty: Plumb's own executor
  const char* pins;
};

Pricing priced_question(const MemoryQuestion& question) {
  TrainingSpec training{.global_batch = 64, .sequence = 1024};
  if (question.stack[0] != 0)
    training.stack = parse_stack(source_text(std::string("tools/specs/stacks/") + question.stack + ".json"), "stack");
  return {preset_model(question.model), preset_cluster(question.cluster), training};
}

/// Returns cores of families that are drawn from those of the tree.
std::vector<Layout> drawn_cores(const LayoutTree& tree, int draws, std::mt19937& random) {
  const std::vector<Layout>& families = tree.families().layouts;
  std::vector<Layout> drawn;
  for (int draw = 0; draw < draws; ++draw) {
    const std::vector<Layout> cores = tree.cores(families[random() % families.size()]).layouts;
    if (!cores.empty()) drawn.push_back(cores[random() % cores.size()]);
  }
  return drawn;
}

}  // namespace

TEST_CASE("no layout's fullest rank holds less than the bound of its core, on random layouts") {
  constexpr std::array kQuestions = {
      MemoryQuestion{"llama-3-8b", "h100:16", "nemo", "mbs=1|2"},
      MemoryQuestion{"llama-2-13b", "l40s:32", "torchtitan", "mbs=1"},
      MemoryQuestion{"gpt3-175b", "a100:64", "megatron-lm-2022",
                     "mbs=1|4,offload=none|optimizer|optimizer+activations"},
      MemoryQuestion{"mixtral-8x7b", "h100:32", "nemo-moe", "mbs=1,ep=4|8"},
      MemoryQuestion{"llama-2-7b", "a100:16", "deepspeed", ""},
      MemoryQuestion{"gpt3-13b", "a100:16", "", "mbs=1,schedule=1f1b|interleaved|gpipe|zb-h1|zb-v|chimera|bpipe"},
      MemoryQuestion{"gpt2", "a100:8", "", "mbs=1|2,offload=none|optimizer|optimizer+activations"},
  };
  std::mt19937 random(3);
  int tight = 0;
  for (const MemoryQuestion& question : kQuestions) {
    Pricing pricing = priced_question(question);
    Skeletons skeletons;
    LayoutTree tree(pricing, parse_layout_space(question.pins), skeletons);
    REQUIRE(!tree.families().layouts.empty());
    for (const Layout& core : drawn_cores(tree, 25, random)) {
      for (const Layout& layout : tree.layouts(core).layouts) {
        Layout offloading = core;
        offloading.offload = layout.offload;
        const std::int64_t bound = least_peak_bytes(pricing, offloading, *skeletons.find(core));
        CAPTURE(question.model);
        CAPTURE(to_text(layout));
        const std::int64_t peak = std::ranges::max(
            evaluate(pricing, layout, {.simulation = {.record_timeline = false}}).simulation.peak_memory_bytes);
        CHECK(bound <= peak);
        if (2 * bound > peak) ++tight;
      }
    }
  }
  CHECK(tight > 20);  // a bound of 0 would pass the rest
}

TEST_CASE("memory alone is that of the prices, and no variant holds less than the one that divides and offloads most") {
  constexpr std::array kQuestions = {
      MemoryQuestion{"llama-3-8b", "h100:32", "nemo", "mbs=1|2"},
      MemoryQuestion{"mixtral-8x7b", "h100:32", "nemo-moe", "mbs=1,ep=4|8"},
      MemoryQuestion{"llama-2-7b", "a100:16", "deepspeed", ""},
      MemoryQuestion{"llama-2-13b", "l40s:32", "torchtitan", "mbs=1"},
      MemoryQuestion{"gpt2", "a100:16", "", "mbs=1|2"},
  };
  std::mt19937 random(11);
  int variants = 0, dearer = 0;
  for (const MemoryQuestion& question : kQuestions) {
    Pricing pricing = priced_question(question);
    LayoutSpace space = parse_layout_space(question.pins);
    HeldBytes memory(pricing);
    Skeletons skeletons;
    LayoutTree tree(pricing, space, skeletons);
    for (const Layout& core : drawn_cores(tree, 40, random)) {
      for (const Layout& layout : tree.layouts(core).layouts) {
        CAPTURE(question.model);
        CAPTURE(to_text(layout));
        const std::vector<std::int64_t> held = memory.of(layout);
        CHECK(held == memory.of(layout, memory.price(layout)));
        const std::vector<std::int64_t> least = memory.of(most_frugal_variant(layout));
        CHECK(std::ranges::max(least) <= std::ranges::max(held));
        ++variants;
        dearer += least < held ? 1 : 0;
      }
    }
  }
  CHECK(variants > 500);
  CHECK(dearer > 100);  // a variant that is the layout itself would pass the rest
}

}  // namespace plumb::test
