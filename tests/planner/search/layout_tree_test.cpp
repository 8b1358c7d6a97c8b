#include "planner/search/layout_tree.h"

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "planner/search/search.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

TrainingSpec of_megatron() {
  TrainingSpec training{.global_batch = 128, .sequence = 4096};
  training.stack = parse_stack(source_text("tools/specs/stacks/megatron-core.json"), "megatron-core");
  return training;
}

}  // namespace

TEST_CASE("layouts lie below their core, cores below their family, and no layout is there twice") {
  Pricing pricing(small_gpt(), round_cluster(8), {.global_batch = 8, .sequence = 128});
  Skeletons skeletons;
  LayoutTree tree(pricing, {}, skeletons);
  std::set<std::string> texts;
  for (const Layout& family : tree.families().layouts) {
    for (const Layout& core : tree.cores(family).layouts) {
      CHECK(family_of(core) == family_of(family));
      for (const Layout& layout : tree.layouts(core).layouts) {
        CHECK(family_of(layout) == family_of(family));
        CHECK(layout.schedule == core.schedule);
        CHECK(layout.zero == core.zero);
        CHECK(texts.insert(to_text(layout)).second);
      }
    }
  }
  CHECK(texts.size() == enumerate_layouts(pricing, {}).layouts.size());
}

TEST_CASE("every layout of a space is one that the space holds") {
  Pricing pricing(small_gpt(), round_cluster(8), {.global_batch = 16, .sequence = 256});
  for (const char* text : {"tp=2|4,pp=..2", "pp=2..4,mbs=2..,zero=0|1",
                           "schedule=zb-h1|interleaved,v=..2,recompute=full", "pp=2|4,v=1,split=2:2:2:2|5:3|3:5"}) {
    const LayoutSpace space = parse_layout_space(text);
    const Enumeration found = enumerate_layouts(pricing, space);
    CHECK(!found.layouts.empty());
    for (const Layout& layout : found.layouts) CHECK(holds(space, layout));
    if (!space.schedule.is_open() || !space.split.is_open()) continue;  // it names what is not open
    std::size_t held = 0;
    for (const Layout& layout : enumerate_layouts(pricing, {}).layouts) held += holds(space, layout) ? 1 : 0;
    CHECK(held == found.layouts.size());
  }
}

TEST_CASE("a framework that takes any split is offered the balanced one where it is another than its own") {
  Pricing pricing(preset_model("qwen3-8b"), preset_cluster("h100:16"), of_megatron());
  const LayoutSpace space = parse_layout_space("dp=4,pp=4,v=1,mbs=1");
  std::set<std::vector<int>> splits;
  for (const Layout& layout : enumerate_layouts(pricing, space).layouts) splits.insert(layout.split);
  // The head weighs less where layers are rebuilt, so that both of these are balanced.
  CHECK(splits == std::set<std::vector<int>>{{}, {10, 10, 10, 6}, {9, 10, 10, 7}});
  const SearchResult found = search_layouts(pricing, space, {.keep = 1});
  REQUIRE(!found.ranked.empty());
  CHECK(found.ranked.front().layout.split == std::vector{10, 10, 10, 6});
  TrainingSpec limited = of_megatron();
  limited.stack->can.named_splits = false;
  Pricing other(preset_model("qwen3-8b"), preset_cluster("h100:16"), limited);
  for (const Layout& layout : enumerate_layouts(other, space).layouts) CHECK(layout.split.empty());
  CHECK(!enumerate_layouts(other, parse_layout("dp=4,pp=4,v=1,mbs=1,split=9:10:10:7")).layouts.empty());
}

TEST_CASE("degrees that the framework does not run end the tree at their family") {
  TrainingSpec short_sequences = of_megatron();
  short_sequences.sequence = 2048;
  Pricing pricing(preset_model("gpt3-175b"), preset_cluster("h100:32"), short_sequences);  // 96 heads
  Skeletons skeletons;
  LayoutTree tree(pricing, {}, skeletons);
  for (const Layout& family : tree.families().layouts) CHECK(family.tensor <= 8);
  CHECK(std::ranges::any_of(tree.families().conflicts, [](const Rejection& conflict) {
    return conflict.layout == LayoutRequest{.tensor = 32} || conflict.layout == LayoutRequest{.tensor = 16};
  }));
}

TEST_CASE("enumeration offers every key and no layout twice") {
  const TrainingSpec training{.global_batch = 16, .sequence = 256};
  Pricing pricing(small_gpt(), round_cluster(8), training);
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
    CHECK(std::ranges::any_of(texts, [&](const std::string& text) { return text.find(part) != std::string::npos; }));
  }
}

}  // namespace plumb::test
