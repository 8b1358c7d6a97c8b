#include "planner/search/candidates.h"

#include <algorithm>
#include <array>
#include <random>

#include <doctest/doctest.h>

#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("what is learned later of a layout's time and energy is never less: work, stages, own links, shared links") {
  std::mt19937 random(7);
  struct Question {
    const char* model;
    const char* cluster;
    std::int64_t global_batch;
    const char* stack;
    const char* pins;
  };
  constexpr std::array kQuestions = {
      Question{"llama-3-8b", "h100:16", 64, "nemo", "mbs=1"},
      Question{"llama-2-13b", "l40s:32", 64, "torchtitan", "mbs=2"},
      Question{"gpt3-175b", "a100-4x200g:64", 64, "megatron-lm-2022", "mbs=1,tp=8"},
      Question{"mixtral-8x7b", "h100:32", 64, "nemo-moe", "mbs=1,ep=8"},
      Question{"llama-2-7b", "rtx4090:16", 32, "megatron-core", "mbs=1"},
      Question{"deepseek-v2", "h100:64", 128, "nemo-moe", "mbs=1,ep=16,tp=2"},
  };
  int dearer = 0;
  for (const Question& question : kQuestions) {
    CAPTURE(question.model);
    TrainingSpec training{.global_batch = question.global_batch, .sequence = 2048};
    training.stack = parse_stack(source_text(std::string("tools/specs/stacks/") + question.stack + ".json"), "stack");
    training.stack->can = {};  // ZeRO 2 and 3 share most
    ClusterSpec cluster = preset_cluster(question.cluster);
    cluster.device.memory_bytes *= 8;  // so that few are out
    cluster.operation = {.idle_watts = 100, .busy_watts = 400};
    Pricing pricing(preset_model(question.model), cluster, training);
    const std::optional<Schedule> own;
    const SearchObjective energy = least_energy(cluster);
    Candidates candidates(pricing, parse_layout(question.pins), own, {.objective = energy});
    CHECK(candidates.size() == 0);
    SimTime least_below = SimTime::max();
    for (std::size_t family = 0; family < candidates.families().size(); ++family) {
      const Node opened = candidates.node_of(Level::kFamily, family);
      for (const Node& core : candidates.take_steps({&opened, 1})) {
        const SimTime bound = candidates.core(core.index).bound;
        CHECK(bound >= candidates.families()[family].bound);
        for (const Node& layout : candidates.take_steps({&core, 1})) CHECK(candidates[layout.index].time >= bound);
        least_below = std::min(least_below, bound);
      }
    }
    CHECK(least_below > SimTime{0});
    REQUIRE(candidates.size() > 30);
    for (int draw = 0; draw < 12; ++draw) {
      const std::size_t index = random() % candidates.size();
      CAPTURE(to_text(candidates.layout(index)));
      Candidate before = candidates[index];
      while (candidates[index].known < Known::kShared) {
        const Node node = candidates.node_of(Level::kCandidate, index);
        candidates.take_steps({&node, 1});
        if (candidates[index].known == Known::kOut) break;
        CHECK(candidates[index].known > before.known);
        CHECK(candidates[index].time >= before.time);
        CHECK(candidates[index].value >= before.value);
        CHECK(candidates[index].peak_bytes >= before.peak_bytes);
        if (candidates[index].known == Known::kShared && candidates[index].time > before.time) ++dearer;
        before = candidates[index];
      }
    }
  }
  CHECK(dearer > 10);  // links are shared in some
}

}  // namespace plumb::test
