#include "planner/search/held_order.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "planner/evaluate/host_offload.h"
#include "schedules/generators/catalogue.h"
#include "schedules/liveness.h"

namespace plumb::test {
namespace {

/// Every action in its turn.
std::vector<std::int64_t> action_by_action(const CostTable& costs, const Schedule& order) {
  const std::vector<bool> has_backward = stages_with_backward(order);
  std::vector<std::int64_t> peaks;
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) {
    std::int64_t held = 0;
    for (std::size_t stage = 0; stage < order.stages.size(); ++stage) {
      const StageMemory& memory = costs.stages[stage].memory;
      if (order.stages[stage].rank == static_cast<int>(rank))
        held += memory.parameter_bytes + memory.gradient_bytes + memory.optimizer_bytes;
    }
    std::int64_t peak = held;
    std::set<std::pair<int, int>> rebuilt;
    for (const Action& action : order.ranks[rank]) {
      const StageMemory& memory = costs.stages[action.stage].memory;
      const std::int64_t all = memory.forward_bytes + memory.recompute_bytes;
      const bool forward = action.op == Op::kForward || action.op == Op::kRecompute;
      const bool backward = action.op == Op::kBackward || action.op == Op::kInputGrad;
      if (action.op == Op::kForward || action.op == Op::kReload) held += memory.forward_bytes;
      if (action.op == Op::kOffload) held -= memory.forward_bytes;
      if (action.op == Op::kRecompute) rebuilt.insert({action.stage, action.microbatch});
      const bool brings_back = backward && !rebuilt.contains({action.stage, action.microbatch});
      if (action.op == Op::kRecompute || brings_back) held += memory.recompute_bytes;
      const std::int64_t workspace = forward ? memory.forward_workspace_bytes : memory.backward_workspace_bytes;
      if (forward || backward || action.op == Op::kWeightGrad)
        peak = std::max(peak, held + workspace + memory.unsharded_bytes);
      if (action.op == Op::kForward && !has_backward[action.stage]) held -= memory.forward_bytes;
      if (action.op == Op::kBackward) held -= all;
      if (action.op == Op::kInputGrad) held -= memory.released_at_input_grad_bytes;
      if (action.op == Op::kWeightGrad) held -= all - memory.released_at_input_grad_bytes;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

/// Any bytes; what I releases is a part of what is held.
StageMemory any_memory(std::mt19937& random) {
  std::uniform_int_distribution<std::int64_t> bytes(0, 1000);
  StageMemory memory{.parameter_bytes = bytes(random),
                     .gradient_bytes = bytes(random),
                     .optimizer_bytes = bytes(random),
                     .forward_bytes = bytes(random),
                     .recompute_bytes = bytes(random),
                     .forward_workspace_bytes = bytes(random),
                     .backward_workspace_bytes = bytes(random),
                     .unsharded_bytes = bytes(random)};
  memory.released_at_input_grad_bytes = (memory.forward_bytes + memory.recompute_bytes) * bytes(random) / 1000;
  return memory;
}

}  // namespace

TEST_CASE("the few moments of an order give the peaks that all its actions give, whichever stages are alike") {
  std::mt19937 random(7);
  const std::vector<std::string> names = {"gpipe",  "1f1b",    "interleaved", "bfs",         "zb-h1",
                                          "zb-h2",  "zb-v",    "v-half",      "dualpipev",   "stp",
                                          "hanayo", "chimera", "seq1f1b",     "forward-only"};
  for (const std::string& name : names) {
    for (const bool offload : {false, true}) {
      const bool looped = name == "interleaved" || name == "bfs" || name == "hanayo";
      Schedule order = make_schedule(name, {.ranks = 4, .microbatches = 8, .chunks = looped ? 2 : 1});
      if (offload) order = with_offload(std::move(order), {.offload = {.activations = true}});
      for (const int kinds : {1, 3, static_cast<int>(order.stages.size())}) {
        CAPTURE(name);
        CAPTURE(kinds);
        CostTable by_kind;
        for (int kind = 0; kind < kinds; ++kind) by_kind.stages.push_back({.memory = any_memory(random)});
        std::vector<int> kind_of_stage(order.stages.size());
        CostTable by_stage;
        for (std::size_t stage = 0; stage < kind_of_stage.size(); ++stage) {
          kind_of_stage[stage] = static_cast<int>(stage) % kinds;
          by_stage.stages.push_back(by_kind.stages[kind_of_stage[stage]]);
        }
        CHECK(memory_in_issue_order(by_kind, held_order(order, kind_of_stage)) == action_by_action(by_stage, order));
      }
    }
  }
}

TEST_CASE("1F1B's ranks each have two moments: a forward and a backward with all that they hold") {
  const Schedule order = make_schedule("1f1b", {.ranks = 4, .microbatches = 64});
  std::vector<int> own(order.stages.size());
  std::iota(own.begin(), own.end(), 0);
  const HeldOrder held = held_order(order, own);
  REQUIRE(held.ranks.size() == 4);
  for (int rank = 0; rank < 4; ++rank) {
    REQUIRE(held.ranks[rank].moments.size() == 2);
    for (const HeldMoment& moment : held.ranks[rank].moments) {
      CHECK(held.counts[moment.first].forward == 4 - rank);
      CHECK(held.counts[moment.first].rebuilt == (moment.forward ? 0 : 1));
    }
  }
}

TEST_CASE("a few periods of an order that repeats hold what the whole order holds") {
  std::mt19937 random(2);
  constexpr int kRanks = 4;
  for (const CatalogueEntry& entry : catalogue()) {
    for (const int microbatches : {200, 203, 206}) {
      const Layout layout{
          .pipeline = kRanks, .chunks = entry.takes_chunks ? 2 : entry.chunks, .schedule = std::string(entry.name)};
      const TrainingSpec training{.global_batch = microbatches, .sequence = 1};
      const Schedule order = order_of(training, layout), few = short_order_of(training, layout);
      INFO(entry.name);
      CHECK((action_count(few) < action_count(order)) ==
            (period_of(entry.name, {.ranks = kRanks, .microbatches = microbatches}) > 0));
      CHECK(few.stages == order.stages);
      CostTable costs;
      std::vector<int> own(order.stages.size());
      std::iota(own.begin(), own.end(), 0);
      for (std::size_t stage = 0; stage < own.size(); ++stage) costs.stages.push_back({.memory = any_memory(random)});
      CHECK(memory_in_issue_order(costs, held_order(few, own)) == memory_in_issue_order(costs, held_order(order, own)));
    }
  }
}

}  // namespace plumb::test
