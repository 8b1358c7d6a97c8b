#include "schedules/dependencies/joint_reductions.h"

#include <doctest/doctest.h>

#include "schedules/dependencies/progress.h"
#include "schedules/forms/text_form.h"
#include "schedules/rules/validate.h"

namespace plumb::test {
namespace {

/// Two lanes lie over two ranks, each of which has a copy of each of two model parts.
Schedule two_lanes(std::string_view rows) {
  Schedule schedule = parse_schedule(rows);
  schedule.stages = bidirectional_placement(2);
  schedule.microbatches = 2;
  return schedule;
}

// Stages 0 and 2 are copies of model part 0, stages 1 and 3 of part 1; 0 and 3 are on rank 0, 1 and 2 on rank 1.
constexpr std::string_view kCompute0 = "0F0 3F1 3B1 0B0 ";
constexpr std::string_view kCompute1 = "2F1 1F0 1B0 2B1 ";

Schedule with_ends(std::string_view rank0, std::string_view rank1) {
  return two_lanes(std::string(kCompute0) + std::string(rank0) + "\n" + std::string(kCompute1) + std::string(rank1));
}

}  // namespace

TEST_CASE("without copies every reduction is its own") {
  const JointReductions joint = joint_reductions(parse_schedule("0F0 0B0 0REDUCE_GRAD"));
  CHECK(joint.collective_of.empty());
  CHECK(joint.members.empty());
}

TEST_CASE("the k-th reductions of copies are one collective, bucket by bucket") {
  const Schedule schedule =
      with_ends("0REDUCE_GRAD/1 0REDUCE_GRAD 0REDUCE_GRAD", "2REDUCE_GRAD 2REDUCE_GRAD/1 2REDUCE_GRAD");
  const JointReductions joint = joint_reductions(schedule);
  // Rank 0 has ids 0 to 6, rank 1 has 7 to 13.
  CHECK(joint.members == std::vector<std::vector<std::int32_t>>{{4, 12}, {5, 11}, {6, 13}});
  CHECK(joint.collective_of[12] == 0);
  CHECK(joint.collective_of[0] == -1);
}

TEST_CASE("a collective runs once all members stand first on their ranks") {
  const Schedule schedule = with_ends("0REDUCE_GRAD 3REDUCE_GRAD", "2REDUCE_GRAD 1REDUCE_GRAD");
  const ActionIds ids = action_ids(schedule);
  const JointReductions joint = joint_reductions(schedule);
  ReductionQueues queues(schedule, ids, joint);
  CHECK(queues.issue(4).empty());
  CHECK(queues.issue(5).empty());
  CHECK_FALSE(queues.empty());
  CHECK(queues.issue(10) == std::vector<std::int32_t>{0});
  CHECK(queues.issue(11) == std::vector<std::int32_t>{1});
  CHECK(queues.empty());
}

TEST_CASE("one late member may let several collectives run, in order") {
  const Schedule schedule = with_ends("0REDUCE_GRAD 0REDUCE_GRAD/1", "2REDUCE_GRAD/1 2REDUCE_GRAD");
  const ActionIds ids = action_ids(schedule);
  const JointReductions joint = joint_reductions(schedule);
  ReductionQueues crossed(schedule, ids, joint);
  for (const std::int32_t id : {4, 5, 10, 11}) CHECK(crossed.issue(id).empty());
  CHECK_FALSE(crossed.empty());  // each waits for the other, behind which it stands

  const Schedule alike = with_ends("0REDUCE_GRAD 3REDUCE_GRAD", "1REDUCE_GRAD");
  const JointReductions lonely = joint_reductions(alike);
  const ActionIds alike_ids = action_ids(alike);
  ReductionQueues queues(alike, alike_ids, lonely);
  CHECK(queues.issue(4) == std::vector<std::int32_t>{0});  // its copy reduces nothing: it runs alone
}

TEST_CASE("ranks that list two such reductions in opposite orders deadlock") {
  const std::string_view ends0 = "0REDUCE_GRAD 3REDUCE_GRAD 0OPTIMIZER_STEP 3OPTIMIZER_STEP";
  CHECK(validate(with_ends(ends0, "2REDUCE_GRAD 1REDUCE_GRAD 1OPTIMIZER_STEP 2OPTIMIZER_STEP")).empty());

  const std::vector<Violation> found =
      validate(with_ends(ends0, "1REDUCE_GRAD 2REDUCE_GRAD 1OPTIMIZER_STEP 2OPTIMIZER_STEP"));
  REQUIRE(found.size() == 1);
  CHECK(found.front().rule == Rule::kDeadlock);
  CHECK(found.front().message ==
        "the schedule deadlocks: rank 0: 0REDUCE_GRAD (position 4) waits for rank 0: 3REDUCE_GRAD (position 5), which "
        "waits for rank 0: 0REDUCE_GRAD (position 4)");
}

TEST_CASE("ranks whose steps stand between reductions in opposite orders deadlock too") {
  CHECK_FALSE(runs_to_end(with_ends("0REDUCE_GRAD 0OPTIMIZER_STEP 3REDUCE_GRAD 3OPTIMIZER_STEP",
                                    "1REDUCE_GRAD 1OPTIMIZER_STEP 2REDUCE_GRAD 2OPTIMIZER_STEP")));
}

TEST_CASE("copies that reduce unequally often are named") {
  const std::vector<Violation> found =
      validate(with_ends("0REDUCE_GRAD 3REDUCE_GRAD 3REDUCE_GRAD", "2REDUCE_GRAD 1REDUCE_GRAD"));
  REQUIRE(found.size() == 1);
  CHECK(to_text(found.front()) ==
        "rank 1: 1REDUCE_GRAD is listed 1 times, but stage 3, a copy of stage 1, reduces 2 times with it; list them "
        "equally often (sharding)");
}

}  // namespace plumb::test
