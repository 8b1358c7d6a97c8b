#include "schedules/passes/add_sharding.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/dependencies/like_copies.h"
#include "schedules/dependencies/weight_messages.h"
#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
namespace {

std::string sharded(std::string_view rows, const Sharding& sharding) {
  return to_text(add_sharding(parse_schedule(rows), sharding));
}

int count(const Schedule& schedule, Op op, int stage) {
  int found = 0;
  for (const auto& actions : schedule.ranks)
    for (const Action& a : actions) found += a.op == op && a.stage == stage ? 1 : 0;
  return found;
}

/// Returns the most stages of one rank that stand gathered at once.
int most_gathered(const std::vector<Action>& actions) {
  int now = 0, most = 0;
  for (const Action& a : actions) {
    if (a.op == Op::kUnshard) most = std::max(most, ++now);
    if (a.op == Op::kReshard) --now;
  }
  return most;
}

}  // namespace

TEST_CASE("with none left gathered, each action gathers for itself, and each gradient is reduced") {
  CHECK(sharded("0F0 0B0", {}) == text("0UNSHARD 0F0 0RESHARD 0UNSHARD 0B0 0RESHARD 0REDUCE_GRAD"));
  CHECK(sharded("0F0 0F1 0B0&0F2 0B1 0B2\n", {}) ==
        text("0UNSHARD 0F0 0RESHARD 0UNSHARD 0F1 0RESHARD 0UNSHARD 0B0&0F2 0RESHARD 0REDUCE_GRAD "
             "0UNSHARD 0B1 0RESHARD 0REDUCE_GRAD 0UNSHARD 0B2 0RESHARD 0REDUCE_GRAD"));
}

TEST_CASE("with one left gathered, a run of a stage's actions gathers once, and reduces once") {
  CHECK(sharded("0F0 0F1 1F0 1F1 1B1 1B0 0B1 0B0", {.gathered_stages = 1}) ==
        text("0UNSHARD 0F0 0F1 0RESHARD 1UNSHARD 1F0 1F1 1B1 1B0 1RESHARD 1REDUCE_GRAD 0UNSHARD 0B1 0B0 0RESHARD "
             "0REDUCE_GRAD"));
}

TEST_CASE("a breadth-first schedule gathers each chunk once for its forwards and once for its backwards") {
  const Schedule order = make_schedule("bfs", {.ranks = 2, .microbatches = 6, .chunks = 3});
  const Schedule lowered = lower(order, {.data = {.enabled = true, .zero = 3, .sharding = {.gathered_stages = 1}}});
  CHECK(validate(lowered).empty());
  for (int stage = 0; stage < 6; ++stage) {
    CHECK(count(lowered, Op::kUnshard, stage) == (stage < 4 ? 2 : 1));  // a rank's last chunk turns at once
    CHECK(count(lowered, Op::kReshard, stage) == (stage < 4 ? 2 : 1));
    CHECK(count(lowered, Op::kReduceGrad, stage) == 1);
  }
}

TEST_CASE("the stage that is needed last makes room") {
  CHECK(sharded("0F0 1F0 2F0 1F1 0F1", {.gathered_stages = 2}) ==
        text("0UNSHARD 0F0 0RESHARD 1UNSHARD 1F0 2UNSHARD 2F0 2RESHARD 1F1 1RESHARD 0UNSHARD 0F1 0RESHARD"));
}

TEST_CASE("a prefetched stage is gathered beside the run ahead of its own, and stays if that is no gap") {
  CHECK(sharded("0F0 0F1 1F0 1F1 2F0 2F1", {.gathered_stages = 1, .prefetch = true}) ==
        text("0UNSHARD 1UNSHARD 0F0 0F1 0RESHARD 2UNSHARD 1F0 1F1 1RESHARD 2F0 2F1 2RESHARD"));
  CHECK(sharded("0F0 1F0 0F1 1F1", {.gathered_stages = 1, .prefetch = true}) ==
        text("0UNSHARD 1UNSHARD 0F0 1F0 0F1 0RESHARD 1F1 1RESHARD"));
}

TEST_CASE("an optimizer step makes the gathered parameters stale") {
  CHECK(sharded("0F0 0B0 0OPTIMIZER_STEP 0F1 0B1 0OPTIMIZER_STEP", {.gathered_stages = 1, .prefetch = true}) ==
        text("0UNSHARD 0F0 0B0 0RESHARD 0REDUCE_GRAD 0OPTIMIZER_STEP 0UNSHARD 0F1 0B1 0RESHARD 0REDUCE_GRAD "
             "0OPTIMIZER_STEP"));
}

TEST_CASE("numbers that make no sense are refused") {
  CHECK_THROWS_WITH_AS(sharded("0F0 0B0", {.gathered_stages = -1}), "-1 stages cannot stand gathered: give 0 or more",
                       ScheduleError);
  CHECK_THROWS_AS(sharded("0F0 0B0", {.prefetch = true}), ScheduleError);
}

TEST_SUITE("property") {
  TEST_CASE("every schedule can be sharded, copies alike, and gathers no more than it may") {
    for (const CatalogueEntry& entry : catalogue()) {
      const Schedule order = entry.make({.ranks = 4, .microbatches = 12, .chunks = entry.takes_chunks ? 3 : 1});
      // Copies that meet in different orders, weights that lanes share, and weights that travel.
      if (entry.name == "gems" || entry.name == "helixpipe" || weights_travel(order)) {
        CHECK_THROWS_AS(lower(order, {.data = {.enabled = true, .zero = 3}}), ScheduleError);
        continue;
      }
      for (const int stages : {0, 1, 2, 3}) {
        for (const bool prefetch : {false, true}) {
          if (prefetch && stages == 0) continue;
          const Schedule result = lower(
              order,
              {.data = {.enabled = true, .zero = 3, .sharding = {.gathered_stages = stages, .prefetch = prefetch}}});
          INFO(entry.name, " stages=", stages, " prefetch=", prefetch);
          CHECK(validate(result).empty());
          CHECK(why_copies_cannot_share(result, true).empty());
          for (const auto& actions : result.ranks) {
            const bool pairs = std::ranges::any_of(actions, &Action::overlaps_next);
            CHECK(most_gathered(actions) <= std::max(stages, pairs ? 2 : 1) + (prefetch ? (pairs ? 2 : 1) : 0));
          }
        }
      }
    }
  }
}

}  // namespace plumb::test
