#include "schedules/passes/add_lifespan_offload.h"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/liveness.h"
#include "schedules/passes/lower.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
namespace {

std::string offloaded_by_life(std::string_view rows, int stages) {
  return to_text(add_lifespan_offload(parse_schedule(rows), stages));
}

/// Returns the stages of a rank that have an OFFLOAD.
std::set<int> moved_stages(const Schedule& schedule, std::size_t rank) {
  std::set<int> stages;
  for (const Action& action : schedule.ranks[rank])
    if (action.op == Op::kOffload) stages.insert(action.stage);
  return stages;
}

/// Returns the most activations of one stage that its rank holds, by reading the rank's list.
int most_of(const std::vector<Action>& actions, int stage) {
  int here = 0, most = 0;
  for (const Action& action : actions) {
    if (action.stage != stage) continue;
    if (action.op == Op::kForward) most = std::max(most, ++here);
    if (gives_weight_gradient(action.op)) --here;
  }
  return most;
}

std::vector<Action> without_moves(std::vector<Action> actions) {
  std::erase_if(actions, [](const Action& a) { return takes_away(a.op) || brings_back(a.op); });
  return actions;
}

}  // namespace

TEST_CASE("the stage whose activations live longest is moved, behind each forward and ahead of each backward") {
  CHECK(offloaded_by_life("stages: 0/0/0 1/1/0 0/2/0\n0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n1F0 1F1 1B0 1B1", 1) ==
        text("stages: 0/0/0 1/1/0 0/2/0\n"
             "0F0 0OFFLOAD0 0F1 0OFFLOAD1 2F0 2F1 2B0 0RELOAD0 2B1 0RELOAD1 0B0 0B1\n"
             "1F0 1F1 1B0 1B1"));
}

TEST_CASE("nothing moves for no stage, and what is needed within two actions stays") {
  CHECK(offloaded_by_life("0F0 0F1 0F2 0B0 0B1 0B2", 0) == text("0F0 0F1 0F2 0B0 0B1 0B2"));
  CHECK(offloaded_by_life("0F0 0F1 0B0 0B1", 1) == text("0F0 0F1 0B0 0B1"));
}

TEST_CASE("a negative number and a schedule that moves activations already are refused") {
  CHECK_THROWS_WITH_AS(offloaded_by_life("0F0 0B0", -1), "-1 stages of a rank cannot be offloaded: give 0 or more",
                       ScheduleError);
  CHECK_THROWS_WITH_AS(add_lifespan_offload(make_schedule("bpipe", {.ranks = 8, .microbatches = 8}), 1),
                       "bpipe moves activations already (0EVICT4): offload a schedule that keeps them", ScheduleError);
}

TEST_CASE("of interleaved's chunks the first lives longest: without it a rank holds its other chunks and a few") {
  for (const int p : {2, 4, 8}) {
    const Schedule order = make_schedule("interleaved", {.ranks = p, .microbatches = 4 * p, .chunks = 2});
    const Schedule moved = add_lifespan_offload(order, 1);
    const std::vector<RankLiveness> before = liveness(order), after = liveness(moved);
    for (int r = 0; r < p; ++r) {
      INFO("p=", p, " r=", r);
      const auto rank = static_cast<std::size_t>(r);
      CHECK(moved_stages(moved, rank) == std::set<int>{r});
      CHECK(after[rank].peak <= most_of(order.ranks[rank], p + r) + 3);
      CHECK(after[rank].peak <= before[rank].peak);
    }
    CHECK(after[0].peak < before[0].peak);
  }
}

TEST_SUITE("property") {
  TEST_CASE("every schedule can be offloaded so, keeps its order and holds no more") {
    for (const CatalogueEntry& entry : catalogue()) {
      if (entry.name == "bpipe") continue;
      for (const int chunks : {1, 2}) {
        if (chunks > 1 && !entry.takes_chunks) continue;
        const Schedule order =
            entry.make({.ranks = 4, .microbatches = 12, .chunks = chunks, .slices = entry.takes_slices ? 3 : 1});
        for (const int stages : {1, 2, 9}) {
          INFO(entry.name, " v=", chunks, " stages=", stages);
          const Schedule moved = add_lifespan_offload(order, stages);
          CHECK(validate(lower(order, {.offload_stages = stages})).empty());
          const std::vector<RankLiveness> before = liveness(order), after = liveness(moved);
          for (std::size_t r = 0; r < order.ranks.size(); ++r) {
            CHECK(without_moves(moved.ranks[r]) == order.ranks[r]);
            CHECK(after[r].peak <= before[r].peak);
            CHECK(static_cast<int>(moved_stages(moved, r).size()) <= stages);
          }
        }
      }
    }
  }
}

}  // namespace plumb::test
