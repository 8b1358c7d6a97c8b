#include "schedules/rules/validate.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/generators/phases.h"
#include "schedules/passes/lower.h"
#include "tests/schedules/only_violation.h"

namespace plumb::test {
namespace {

std::vector<Violation> violations_of(std::string_view text) {
  return validate(parse_schedule(text));
}

void check_place(const Violation& violation, int rank, int position, Rule rule) {
  CAPTURE(violation.message);
  CHECK(violation.rank == rank);
  CHECK(violation.position == position);
  CHECK(rule_name(violation.rule) == rule_name(rule));
}

}  // namespace

TEST_CASE("a schedule without fault has no violation") {
  CHECK(violations_of("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1").empty());
  CHECK(violations_of("0F0 0F1\n1F0 1F1").empty());          // forward-only
  CHECK(violations_of("0F0 0R0 0I0 0W0\n1F0 1B0").empty());  // split, recomputed, and whole
}

TEST_CASE("a missing backward is named") {
  const Violation violation = only_violation("0F0 0F1 0B0 0B1\n1F0 1B0 1F1");
  check_place(violation, 1, -1, Rule::kMissing);
  CHECK(to_text(violation) == "rank 1: 1B1 is missing; add it (missing)");
}

TEST_CASE("a split backward needs both halves, and a micro-batch has one kind of backward") {
  check_place(only_violation("0F0 0I0\n1F0 1B0"), 0, -1, Rule::kMissing);
  check_place(only_violation("0F0 0W0\n1F0 1B0"), 0, -1, Rule::kMissing);
  check_place(only_violation("0F0 0I0 0W0 0B0\n1F0 1B0"), 0, 3, Rule::kMixedBackward);
}

TEST_CASE("a doubled action is named at its second place") {
  check_place(only_violation("0F0 0F1 0B0 0B1 0F1\nmicrobatches: 2"), 0, 4, Rule::kDoubled);
}

TEST_CASE("a misplaced action is named with the rank that owns its stage") {
  const Violation violation = only_violation("0F0 0F1 0B0 1B1 0B1\n1F0 1F1 1B0");
  check_place(violation, 0, 3, Rule::kMisplaced);
}

TEST_CASE("a stage or micro-batch that the schedule does not have is foreign") {
  check_place(only_violation("microbatches: 1\n0F0 0B0 0F1"), 0, 2, Rule::kForeign);
  check_place(only_violation("stages: 0/0/0\n0F0 0B0 3F0"), 0, 2, Rule::kForeign);
}

TEST_CASE("a backward ahead of its forward is out of order") {
  const Violation violation = only_violation("0F0 0B1 0F1 0B0");
  check_place(violation, 0, 1, Rule::kOrder);
  CHECK(violation.message == "0B1 stands ahead of its forward 0F1 (position 2); list that first");
  check_place(only_violation("0F0 0W0 0I0"), 0, 1, Rule::kOrder);
  check_place(only_violation("0F0 0B0 0R0"), 0, 1, Rule::kOrder);
}

TEST_CASE("each stage has a rank and each model part a stage") {
  CHECK(violations_of("stages: 5/0/0\n0F0").front().rule == Rule::kPlacement);
  CHECK(violations_of("stages: 0/0/0 0/2/0\n0F0 1F0").front().rule == Rule::kPlacement);
  CHECK(violations_of("stages: 0/0/0 0/0/0\n0F0 1F0").front().rule == Rule::kPlacement);
  CHECK(violations_of("").front().rule == Rule::kPlacement);
}

TEST_CASE("shards of a model part lie on different ranks, in a schedule of one lane") {
  CHECK(violations_of("stages: 0/0/0 1/0/0\n0F0 0B0\n1F0 1B0").empty());
  CHECK(
      violations_of("stages: 0/0/0 0/0/0\n0F0 1F0").front().message ==
      "stages 0 and 1 are both model part 0 of lane 0 on rank 0; give one of them another lane, or as a shard another "
      "rank");
  CHECK(violations_of("microbatches: 2\nstages: 0/0/0 1/0/0 0/0/1\n0F0 2F1\n1F0").front().message ==
        "model part 0 of lane 0 has 2 shards, which schedules of one lane alone can have; give its stages other model "
        "parts");
}

TEST_CASE("a micro-batch stays on one lane") {
  // Two copies of a one-part model; micro-batch 0 runs on both.
  const std::vector<Violation> found = violations_of("microbatches: 2\nstages: 0/0/0 1/0/1\n0F0 0B0\n1F0 1B0 1F1 1B1");
  REQUIRE_FALSE(found.empty());
  check_place(found.front(), 1, 0, Rule::kLane);
}

TEST_CASE("a pair is two compute actions") {
  CHECK(violations_of("0F0 0F1&0B0 0B1").empty());
  Schedule schedule = parse_schedule("0F0 0B0");
  schedule.ranks[0][1].overlaps_next = true;
  check_place(validate(schedule).front(), 0, 1, Rule::kPair);
}

TEST_CASE("orders that wait for each other are reported as the cycle that they are") {
  // Rank 0 wants the gradient of micro-batch 1 first, rank 1 makes it last, behind the forward that rank 0 holds back.
  const Violation violation = only_violation("0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1");
  check_place(violation, -1, -1, Rule::kDeadlock);
  CHECK(violation.message ==
        "the schedule deadlocks: rank 0: 0B0 (position 1) waits for rank 1: 1B0 (position 2), which waits for rank 1: "
        "1F1 "
        "(position 1), which waits for rank 0: 0F1 (position 2), which waits for rank 0: 0B0 (position 1)");
}

TEST_CASE("Megatron's interleaved order for m=8, cut off at m=5, deadlocks at p=4, v=3") {
  constexpr int p = 4;
  constexpr int v = 3;
  constexpr int m = 5;
  Schedule cut{.name = "cut", .microbatches = m, .stages = loop_placement(p, p * v)};
  for (int r = 0; r < p; ++r) {
    std::vector<Action> forwards;
    std::vector<Action> backwards;
    for (int k = 0; k < 2 * p * v; ++k) {
      const int microbatch = k / (p * v) * p + k % p;
      const int chunk = k % (p * v) / p;
      if (microbatch >= m) continue;
      forwards.push_back(compute_action(Op::kForward, chunk * p + r, microbatch));
      backwards.push_back(compute_action(Op::kBackward, (v - 1 - chunk) * p + r, microbatch));
    }
    cut.ranks.push_back(one_forward_one_backward(forwards, backwards, 2 * (p - 1 - r) + (v - 1) * p));
  }
  const std::vector<Violation> found = validate(cut);
  REQUIRE(found.size() == 1);
  CHECK(found.front().rule == Rule::kDeadlock);
}

TEST_CASE("messages of a lowered schedule match one to one") {
  const std::string good = to_text(lower(parse_schedule("0F0 0B0\n1F0 1B0")));
  CHECK(violations_of(good).empty());
  const auto without = [&good](std::string_view token) {
    std::string text = good;
    text.erase(text.find(token), token.size());
    return text;
  };
  check_place(only_violation(without(" 0SEND_F0")), 1, 0, Rule::kUnmatchedMessage);

  const std::vector<Violation> no_receive = violations_of(without("1RECV_F0 "));
  REQUIRE(no_receive.size() == 2);
  check_place(no_receive[0], 0, 2, Rule::kUnmatchedMessage);
  check_place(no_receive[1], 1, 0, Rule::kMissingMessage);
}

TEST_CASE("receives stand in the order of the sends, on the right side of their actions") {
  check_place(only_violation("0F0 0SEND_F0 0F1 0SEND_F1\n1RECV_F1 1RECV_F0 1F0 1F1"), 1, 0, Rule::kMessageOrder);
  check_place(only_violation("0F0 0SEND_F0\n1F0 1RECV_F0"), 1, 1, Rule::kMessageOrder);
  check_place(only_violation("0SEND_F0 0F0\n1RECV_F0 1F0"), 0, 0, Rule::kMessageOrder);
}

TEST_CASE("optimizer steps take every gradient") {
  check_place(only_violation("0F0 0B0 0OPTIMIZER_STEP 0OPTIMIZER_STEP"), 0, 3, Rule::kOptimizer);
  check_place(only_violation("0F0 0F1 0B0 0OPTIMIZER_STEP 0B1"), 0, 4, Rule::kOptimizer);
  check_place(only_violation("weights: stashed\n0F0 0F1 0B0 0OPTIMIZER_STEP 0B1"), 0, -1, Rule::kOptimizer);
  check_place(only_violation("weights: stashed\n0F0 0B0"), -1, -1, Rule::kOptimizer);
}

TEST_CASE("parameters are dropped only where gathered, and gradients that are reduced are all reduced") {
  check_place(only_violation("0F0 0RESHARD 0B0"), 0, 1, Rule::kSharding);
  check_place(only_violation("0F0 0F1 0REDUCE_GRAD 0B0 0B1 0OPTIMIZER_STEP"), 0, 5, Rule::kSharding);
}

TEST_CASE("every action of a lowered schedule is needed, and every exchange of two neighbours is noticed or harmless") {
  const Schedule good = lower(make_schedule("1f1b", {.ranks = 3, .microbatches = 4}));
  REQUIRE(validate(good).empty());
  for (std::size_t r = 0; r < good.ranks.size(); ++r) {
    for (std::size_t i = 0; i < good.ranks[r].size(); ++i) {
      Schedule dropped = good;
      dropped.ranks[r].erase(dropped.ranks[r].begin() + static_cast<std::ptrdiff_t>(i));
      CAPTURE(to_text(good.ranks[r][i]));
      CHECK_FALSE(validate(dropped).empty());

      Schedule doubled = good;
      doubled.ranks[r].push_back(good.ranks[r][i]);
      CHECK_FALSE(validate(doubled).empty());
    }
  }
}

TEST_CASE("require_valid throws the first violation and counts the rest") {
  CHECK_THROWS_WITH_AS(
      require_valid(parse_schedule("microbatches: 1\n0F0 0B0 0B0 0F0")),
      "rank 0, position 2: 0B0 stands on rank 0 at position 1 already; remove one (doubled); 1 more violations",
      ScheduleError);
}

TEST_CASE("a rank that takes more activations than it may is named where it first does") {
  const Schedule schedule = make_schedule("1f1b", {.ranks = 4, .microbatches = 8});
  CHECK(validate(schedule, {.max_activations = {4, 3, 2, 1}}).empty());
  CHECK(validate(schedule, {.max_activations = {4}}).empty());
  const std::vector<Violation> over = validate(schedule, {.max_activations = {3}});
  REQUIRE(over.size() == 1);
  check_place(over.front(), 0, 3, Rule::kMemory);
  CHECK(over.front().message ==
        "0F3 takes the rank to 4 activations, over its limit of 3 (its peak is 4); list a backward ahead of it, "
        "recompute or offload");
  CHECK_THROWS_WITH_AS(validate(schedule, {.max_activations = {4, 4}}),
                       "2 memory limits for 4 ranks: give one for all, or one a rank", ScheduleError);
}

TEST_CASE("two ranks that send to each other before they receive deadlock only where a send holds its rank") {
  // 0 sends F1 ahead of its receive of B0, and 1 sends B0 ahead of its receive of F1.
  const Schedule schedule = parse_schedule(
      "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
      "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1");
  CHECK(validate(schedule).empty());
  CHECK(validate(schedule, {.sends = Sends::kRendezvous}).empty());
  const std::vector<Violation> blocked = validate(schedule, {.sends = Sends::kBlocking});
  REQUIRE(blocked.size() == 1);
  check_place(blocked.front(), -1, -1, Rule::kDeadlock);
  CHECK(blocked.front().message.starts_with("the schedule deadlocks where a send holds its rank: "));
  CHECK(blocked.front().message.find("rank 0: 0SEND_F1 (position 3) waits for rank 1: 1RECV_F1 (position 4)") !=
        std::string::npos);
  CHECK(blocked.front().message.find("rank 1: 1SEND_B0 (position 3), which waits for rank 0: 0RECV_B0 (position 4)") !=
        std::string::npos);
}

TEST_CASE("a micro-batch's number far beyond what is listed is one violation, not a table of its size") {
  const Violation violation = only_violation("microbatches: 2000000000\n0F0 0B0");
  check_place(violation, -1, -1, Rule::kMissing);
  CHECK(violation.message.find("2000000000 micro-batches") != std::string::npos);
}

TEST_CASE("no more than a thousand violations of a kind are collected") {
  std::string row = "0F0 0B0";
  for (int i = 0; i < 5000; ++i) row += " 0F0";
  CHECK(violations_of(row).size() == 1000);
}

TEST_CASE("a stage of a far model part is told by the parts that lack, as many as are worth naming") {
  Schedule far = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
  far.stages[1].model_part = 2'000'000'000;
  CHECK(validate(far).size() <= 1000);
  CHECK(validate(far).front().message == "model part 1 of lane 0 has no stage; give it one");
}

}  // namespace plumb::test
