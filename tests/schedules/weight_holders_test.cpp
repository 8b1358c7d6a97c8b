#include "schedules/weight_holders.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/liveness.h"
#include "schedules/passes/lower.h"
#include "schedules/rules/validate.h"

namespace plumb::test {
namespace {

/// Two lanes. Part 0 and part 2 are on rank 0 in both, part 1 is on rank 1 and without weights.
constexpr const char* kTwoLanes =
    "microbatches: 2\n"
    "stages: 0/0/0 1/1/0 0/2/0 0/0/1 1/1/1 0/2/1\n"
    "0F0 3F1 2F0 5F1 5B1 2B0 3B1 0B0\n"
    "1F0 4F1 4I1 1I0\n";

std::string messages_of(const Schedule& schedule) {
  std::string messages;
  for (const Violation& violation : validate(schedule)) messages += violation.message + "\n";
  return messages;
}

}  // namespace

TEST_CASE(
    "stages of one model part on one rank work with the first one's weights, and input gradients alone with none") {
  CHECK(weight_holders(parse_schedule(kTwoLanes, "")) == std::vector<int>{0, -1, 2, 0, -1, 2});
  CHECK(weight_holders(make_schedule("dualpipe", {.ranks = 2, .microbatches = 4})) == std::vector<int>{0, 1, 2, 3});
  CHECK(weight_holders(make_schedule("vocab-2", {.ranks = 2, .microbatches = 4})) == std::vector<int>{0, 1, 2, 3});
  CHECK(weight_holders(parse_schedule("0F0 0I0\n", "")) == std::vector<int>{0});  // one lane: its W is missing
}

TEST_CASE("weights that lanes share on a rank are stepped once, and nothing is reduced") {
  const Schedule lowered = lower(parse_schedule(kTwoLanes, ""));
  CHECK(messages_of(lowered).empty());
  std::vector<int> stepped;
  for (const std::vector<Action>& actions : lowered.ranks)
    for (const Action& action : actions) {
      CHECK(action.op != Op::kReduceGrad);
      if (action.op == Op::kOptimizerStep) stepped.push_back(action.stage);
    }
  CHECK(stepped == std::vector<int>{0, 2});
}

TEST_CASE("replicas sum weights that lanes share on a rank once, behind all gradients, and do not shard them") {
  const Schedule order = parse_schedule(kTwoLanes, "");
  Schedule lowered = lower(order, {.data = {.enabled = true, .buckets = {2}}});
  CHECK(messages_of(lowered).empty());
  std::erase_if(lowered.ranks[0], [](const Action& action) { return is_message(action.op); });
  CHECK(row_text(lowered.ranks[0]) ==
        "0F0 3F1 2F0 5F1 5B1 2REDUCE_GRAD 2REDUCE_GRAD/1 2B0 3B1 0REDUCE_GRAD 0REDUCE_GRAD/1 0B0 0OPTIMIZER_STEP "
        "2OPTIMIZER_STEP");
  CHECK_THROWS_WITH_AS(lower(order, {.data = {.enabled = true, .zero = 3}}),
                       "ZeRO 3: : the lanes of a rank share weights: take ZeRO 0 or 1", ScheduleError);
}

TEST_CASE("an input gradient ends the life of activations where there are no weights") {
  const std::vector<RankLiveness> held = liveness(parse_schedule(kTwoLanes, ""));
  CHECK(held[0].peak == 4);
  CHECK(held[1].held == std::vector<int>{1, 2, 2, 1});
}

TEST_CASE("a step that leaves a gradient of another lane out is reported, and so is a weight gradient left out") {
  Schedule early = lower(parse_schedule(kTwoLanes, ""));
  std::erase_if(early.ranks[0], [](const Action& action) { return action == Action{.op = Op::kOptimizerStep}; });
  CHECK(messages_of(early).find("stage 0 ends with 2 weight gradients that no OPTIMIZER_STEP takes") !=
        std::string::npos);
  const Schedule half = parse_schedule(
      "microbatches: 2\n"
      "stages: 0/0/0 1/1/0 0/0/1 1/1/1\n"
      "0F0 2F1 2B1 0B0\n"
      "1F0 3F1 3I1 3W1 1I0\n",
      "");
  CHECK(messages_of(half).find("1W0 is missing; add it") != std::string::npos);
}

TEST_CASE("a second step of weights that lanes share on a rank has nothing to take") {
  const Schedule twice =
      parse_schedule("microbatches: 2\nstages: 0/0/0 0/0/1\n0F0 1F1 0B0 1B1 0OPTIMIZER_STEP 1OPTIMIZER_STEP\n", "");
  CHECK(messages_of(twice) == "1OPTIMIZER_STEP has no weight gradient to take; list it behind one, or remove it\n");
}

TEST_CASE("weights that lanes share on a rank are reduced with their copies on others, once") {
  // Part 0 is on rank 0 in lanes 0 and 1, and on rank 1 in lane 2.
  const Schedule lowered =
      lower(parse_schedule("microbatches: 3\nstages: 0/0/0 0/0/1 1/0/2\n0F0 1F1 0B0 1B1\n2F2 2B2\n", ""));
  CHECK(messages_of(lowered).empty());
  CHECK(row_text(lowered.ranks[0]) == "0F0 1F1 0B0 1B1 0REDUCE_GRAD 0OPTIMIZER_STEP");
  CHECK(row_text(lowered.ranks[1]) == "2F2 2B2 2REDUCE_GRAD 2OPTIMIZER_STEP");
}

}  // namespace plumb::test
