#include "executor/training/interruption.h"

#include <optional>

#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"

namespace plumb::test {

TEST_CASE("what fails between two steps names rank and step and leaves the step before") {
  const RankTimeline before{.spans = {{.start = SimTime(1), .end = SimTime(2)}}};
  std::optional<RankTimeline> left;
  const auto interrupted = [&](RankTimeline timeline) { left = std::move(timeline); };
  const auto lost = []() -> int { throw RunError("it waited for rank 3"); };
  CHECK_THROWS_WITH_AS(between_steps(2, 7, &before, interrupted, lost), "rank 2, before step 7: it waited for rank 3",
                       RunError);
  REQUIRE(left);
  CHECK(left->spans.size() == 1);

  left.reset();
  CHECK_THROWS_AS(between_steps(2, 0, nullptr, interrupted, lost), RunError);
  CHECK_FALSE(left);
  const auto told_by_another = []() -> int { throw RunAborted("rank 0 has failed"); };
  CHECK_THROWS_WITH_AS(between_steps(2, 7, &before, interrupted, told_by_another), "rank 0 has failed", RunAborted);
  CHECK_FALSE(left);
  CHECK(between_steps(2, 7, &before, interrupted, [] { return 5; }) == 5);
}

TEST_CASE("an interruption is told once a rank that stands for its pipeline rank has failed") {
  const Schedule schedule = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
  int told = 0;
  const auto listener = [&](const Timeline& timeline) {
    ++told;
    CHECK(timeline.ranks.at(1).spans.size() == 1);
  };
  Interruption interruption(schedule);
  interruption.tell(listener);
  GridCoordinates replica;
  replica.pipeline = replica.data = 1;
  interruption.add(replica, {.spans = {{}, {}}});
  interruption.tell(listener);
  CHECK(told == 0);
  interruption.add({.pipeline = 1}, {.spans = {{}}});
  interruption.tell(listener);
  CHECK(told == 1);
}

}  // namespace plumb::test
