// Holds searches without a pin against searches with one: a pin never finds a faster layout.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "planner/search/search.h"
#include "planner/search/stack_conflict.h"
#include "tests/planner/fixtures.h"
#include "tests/sanitized.h"

namespace plumb::test {
namespace {

struct Question {
  const char* model;
  const char* cluster;
  std::int64_t global_batch;
  std::int64_t sequence;
  const char* stack;
};

Pricing pricing_of(const Question& question) {
  TrainingSpec training{.global_batch = question.global_batch, .sequence = question.sequence};
  training.stack = parse_stack(source_text(std::string("tools/specs/stacks/") + question.stack + ".json"), "stack");
  if (question.cluster[0] == 'v') training.precision = Precision::kFp16;
  return {preset_model(question.model), preset_cluster(question.cluster), training};
}

const std::vector<std::string> kPins = {"tp=1",
                                        "tp=2",
                                        "tp=4",
                                        "tp=8",
                                        "pp=1",
                                        "pp=2",
                                        "pp=4",
                                        "pp=8",
                                        "cp=1",
                                        "cp=2",
                                        "cp=4",
                                        "cp=8",
                                        "ep=2",
                                        "ep=4",
                                        "ep=8",
                                        "etp=1",
                                        "etp=2",
                                        "zero=0",
                                        "zero=1",
                                        "zero=2",
                                        "zero=3",
                                        "sp=0",
                                        "sp=1",
                                        "mbs=1",
                                        "mbs=2",
                                        "mbs=4",
                                        "v=1",
                                        "v=2",
                                        "v=4",
                                        "v=6",
                                        "shard=2",
                                        "shard=4",
                                        "shard=8",
                                        "shard=16",
                                        "shard=32",
                                        "offload=none",
                                        "offload=optimizer",
                                        "offload=optimizer+activations",
                                        "order=tp-cp-dp-pp",
                                        "order=tp-cp-pp-dp",
                                        "cp_kind=ring",
                                        "cp_kind=ulysses",
                                        "cp_kind=all-gather",
                                        "recompute=none",
                                        "recompute=selective",
                                        "recompute=full",
                                        "schedule=1f1b",
                                        "schedule=gpipe",
                                        "schedule=interleaved",
                                        "schedule=zb-h1"};

/// Checks that no pin with which the framework runs the answer makes it faster. Returns how many pins had an answer.
int check_pins(const Question& question, const std::vector<std::string>& pins, bool wide) {
  Pricing pricing = pricing_of(question);
  LayoutSpace open;
  open.wide = wide;
  const SearchResult free = search_layouts(pricing, open, {.keep = 1});
  REQUIRE(!free.ranked.empty());
  int answers = 0;
  for (const std::string& pin : pins) {
    if (pin.starts_with("offload=opt") && !pricing.cluster().host) continue;
    CAPTURE(pin);
    LayoutSpace pinned = parse_layout_space(pin);
    pinned.wide = wide;
    // Only what is faster is looked for.
    const SearchResult found =
        search_layouts(pricing, pinned, {.keep = 1, .below = free.values.front(), .advise = false});
    if (found.limited) ++answers;
    if (found.ranked.empty()) continue;
    const Layout& layout = found.ranked.front().layout;
    CHECK(holds(pinned, layout));
    if (!stack_conflicts(pricing, layout).empty()) continue;
    if (layout.pipeline == 1 && layout.schedule != "1f1b") continue;  // one rank has no schedule
    ++answers;
    CAPTURE(to_text(layout));
    CAPTURE(to_text(free.ranked.front().layout));
    CHECK(found.ranked.front().simulation.makespan >= free.ranked.front().simulation.makespan);
  }
  return answers;
}

}  // namespace

TEST_CASE("no pin finds a faster layout than a search without it, on twenty-two questions" *
          doctest::skip(kIsSanitized)) {
  constexpr std::array kQuestions = {
      Question{"llama-3-8b", "h100:64", 64, 131072, "megatron-core"},
      Question{"qwen3-8b", "h100:16", 128, 8192, "megatron-core"},
      Question{"qwen3-8b", "h100:16", 16, 32768, "torchtitan"},
      Question{"llama-3-8b", "h100:16", 32, 8192, "nemo"},
      Question{"llama-3-8b", "h100:8", 16, 8192, "torchtitan"},
      Question{"llama-3-8b", "a100:16", 64, 2048, "megatron-core"},
      Question{"llama-3-8b", "b200:16", 64, 8192, "nemo"},
      Question{"llama-2-7b", "a100:8", 64, 4096, "fsdp"},
      Question{"llama-2-7b", "rtx4090:16", 32, 2048, "megatron-core"},
      Question{"llama-2-7b", "l40s:16", 32, 4096, "torchtitan"},
      Question{"llama-2-7b", "h100:16", 64, 4096, "deepspeed"},
      Question{"llama-2-13b", "l40s:32", 64, 4096, "torchtitan"},
      Question{"llama-2-13b", "a100:32", 64, 4096, "megatron-deepspeed"},
      Question{"llama-2-13b", "h200:8", 32, 4096, "megatron-core"},
      Question{"llama-2-70b", "h100:32", 32, 4096, "nemo"},
      Question{"llama-2-70b", "a100:64", 64, 4096, "megatron-lm-2022"},
      Question{"llama-2-70b", "h100:64", 64, 4096, "megatron-zero-bubble"},
      Question{"gpt3-175b", "a100:64", 32, 2048, "megatron-core"},
      Question{"gpt3-175b", "v100:512", 64, 2048, "megatron-lm-2021"},
      Question{"mixtral-8x7b", "h100:32", 32, 4096, "nemo-moe"},
      Question{"mixtral-8x7b", "h100:16", 16, 16384, "megatron-core"},
      Question{"deepseek-v2", "h100:64", 64, 4096, "nemo-moe"},
  };
  for (const Question& question : kQuestions) {
    CAPTURE(question.model);
    CAPTURE(question.cluster);
    CAPTURE(question.stack);
    CHECK(check_pins(question, kPins, false) > 5);
  }
}

TEST_CASE("no pin finds a faster layout than a wide search without it" * doctest::skip(kIsSanitized)) {
  std::vector<std::string> pins = kPins;
  for (const char* pin : {"group=4", "group=8", "group=16", "schedule=zb-v", "schedule=v-half", "schedule=dualpipev",
                          "offload=optimizer", "tp=16", "recompute_layers=1", "recompute_layers=4"})
    pins.emplace_back(pin);
  for (const Question& question : {Question{"llama-3-8b", "h100:16", 32, 8192, "megatron-core"},
                                   Question{"llama-3-8b", "h100:16", 32, 8192, "torchtitan"}}) {
    CAPTURE(question.stack);
    CHECK(check_pins(question, pins, true) > 20);
  }
}

}  // namespace plumb::test
