#include "schedules/passes/lower.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
TEST_CASE("sends stand behind their producer, receives one compute action ahead of their consumer") {
  const Schedule schedule = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1");
  CHECK(lower(schedule).ranks == rows("0F0 0RECV_B0 0SEND_F0 0F1 0RECV_B1 0SEND_F1 0B0 0B1 0OPTIMIZER_STEP\n"
                                      "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1 1OPTIMIZER_STEP"));
}

TEST_CASE(
    "late receives stand between their consumer and the compute before it, and before the pair that it belongs to") {
  const Schedule schedule = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1");
  CHECK(lower(schedule, {.receives = Receives::kLate}).ranks ==
        rows("0F0 0SEND_F0 0F1 0RECV_B0 0SEND_F1 0B0 0RECV_B1 0B1 0OPTIMIZER_STEP\n"
             "1RECV_F0 1F0 1B0 1RECV_F1 1SEND_B0 1F1 1B1 1SEND_B1 1OPTIMIZER_STEP"));
  const Schedule paired = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0&1F1 1B1");
  CHECK(lower(paired, {.receives = Receives::kLate}).ranks[1] ==
        rows("-\n1RECV_F0 1F0 1RECV_F1 1B0&1F1 1SEND_B0 1B1 1SEND_B1 1OPTIMIZER_STEP")[1]);
}

TEST_CASE("every schedule of the catalogue is valid with late receives") {
  for (const CatalogueEntry& entry : catalogue()) {
    CAPTURE(entry.name);
    const Schedule schedule =
        make_schedule(entry.name, {.ranks = 4, .microbatches = 8, .chunks = entry.takes_chunks ? 2 : 1});
    CHECK(validate(lower(schedule, {.receives = Receives::kLate})).empty());
  }
}

TEST_CASE("receives of a channel keep the order of its sends when the consumers come in another order") {
  // Rank 1 takes micro-batch 1 first, so the receive of micro-batch 0 must be posted before it too.
  const Schedule lowered = lower(parse_schedule("0F0 0F1 0B1 0B0\n1F1 1F0 1B1 1B0"));
  CHECK(lowered.ranks[1] == rows("-\n1RECV_F0 1RECV_F1 1F1 1F0 1B1 1SEND_B1 1B0 1SEND_B0 1OPTIMIZER_STEP")[1]);
}

TEST_CASE("stages on one rank exchange nothing") {
  CHECK_FALSE(has_messages(lower(parse_schedule("0F0 1F0 1B0 0B0"))));
}

TEST_CASE("forward-only schedules get no optimizer step, asynchronous ones keep theirs") {
  CHECK(lower(parse_schedule("0F0 0F1")).ranks == rows("0F0 0F1"));
  const Schedule pipedream = make_schedule("pipedream", {.ranks = 1, .microbatches = 2});
  CHECK(lower(pipedream) == pipedream);
}

TEST_CASE(
    "ZeRO 0 and 1 reduce once, 1 and 2 gather behind the step, 2 and 3 reduce every gradient, 3 gathers around use") {
  const Schedule schedule = parse_schedule("0F0 0F1 0B0 0B1");
  const auto lowered = [&](int zero) { return lower(schedule, {.data = {.enabled = true, .zero = zero}}).ranks; };
  CHECK(lowered(0) == rows("0F0 0F1 0B0 0B1 0REDUCE_GRAD 0OPTIMIZER_STEP"));
  CHECK(lowered(1) == rows("0F0 0F1 0B0 0B1 0REDUCE_GRAD 0OPTIMIZER_STEP 0UNSHARD"));
  CHECK(lowered(2) == rows("0F0 0F1 0B0 0REDUCE_GRAD 0B1 0REDUCE_GRAD 0OPTIMIZER_STEP 0UNSHARD"));
  CHECK(lowered(3) == rows("0UNSHARD 0F0 0RESHARD 0UNSHARD 0F1 0RESHARD 0UNSHARD 0B0 0RESHARD 0REDUCE_GRAD "
                           "0UNSHARD 0B1 0RESHARD 0REDUCE_GRAD 0OPTIMIZER_STEP"));
  CHECK_THROWS_AS(lowered(4), ScheduleError);
}

TEST_CASE("an asynchronous pipeline reduces the gradients of each version it makes") {
  const Schedule schedule = make_schedule("pipedream", {.ranks = 1, .microbatches = 2});
  CHECK(lower(schedule, {.data = {.enabled = true}}).ranks ==
        rows("0F0 0B0 0REDUCE_GRAD 0OPTIMIZER_STEP 0F1 0B1 0REDUCE_GRAD 0OPTIMIZER_STEP"));
}

TEST_CASE("the two of an overlapped pair stay side by side") {
  const Schedule lowered = lower(parse_schedule("0F0 0F1 0B0&0F2 0B1 0B2\n1F0 1F1 1F2 1B0 1B1 1B2"));
  CHECK(lowered.ranks[0] == rows("0F0 0RECV_B0 0SEND_F0 0F1 0RECV_B1 0SEND_F1 0B0&0F2 0RECV_B2 0SEND_F2 0B1 0B2 "
                                 "0OPTIMIZER_STEP")[0]);
}

TEST_CASE("copies of a stage are summed before their steps, by ascending model part on every rank") {
  // Rank 0 holds part 0 of lane 0 and part 1 of lane 1; rank 1 the others. Rank 1 ends with part 0's gradient, rank 0
  // too, and both list part 0's sum first.
  const Schedule schedule =
      parse_schedule("microbatches: 2\nstages: 0/0/0 1/1/0 1/0/1 0/1/1\n0F0 3F1 3B1 0B0\n2F1 1F0 1B0 2B1");
  const auto without_messages = [](const Schedule& lowered) {
    std::vector<std::vector<Action>> ranks = lowered.ranks;
    for (std::vector<Action>& actions : ranks) std::erase_if(actions, [](const Action& a) { return is_message(a.op); });
    return ranks;
  };
  const auto expected = rows(
      "0F0 3F1 3B1 0B0 0REDUCE_GRAD 3REDUCE_GRAD 0OPTIMIZER_STEP 3OPTIMIZER_STEP\n"
      "2F1 1F0 1B0 2B1 2REDUCE_GRAD 1REDUCE_GRAD 1OPTIMIZER_STEP 2OPTIMIZER_STEP");
  CHECK(without_messages(lower(schedule)) == expected);
  CHECK(validate(lower(schedule)).empty());
  CHECK(without_messages(lower(schedule, {.data = {.enabled = true}})) == expected);
  // Copies that share state meet at every gradient, and at every gather.
  CHECK(without_messages(lower(schedule, {.data = {.enabled = true, .zero = 2}})) ==
        rows("0F0 3F1 3B1 3REDUCE_GRAD 0B0 0REDUCE_GRAD 0OPTIMIZER_STEP 0UNSHARD 3OPTIMIZER_STEP 3UNSHARD\n"
             "2F1 1F0 1B0 1REDUCE_GRAD 2B1 2REDUCE_GRAD 1OPTIMIZER_STEP 1UNSHARD 2OPTIMIZER_STEP 2UNSHARD"));
  CHECK(lower(schedule, {.data = {.zero = 2}}) == lower(schedule, {.data = {.enabled = true, .zero = 2}}));
  CHECK(without_messages(lower(schedule, {.data = {.zero = 3}}))[0] ==
        rows("0UNSHARD 0F0 0RESHARD 3UNSHARD 3F1 3RESHARD 3UNSHARD 3B1 3RESHARD 3REDUCE_GRAD 0UNSHARD 0B0 0RESHARD "
             "0REDUCE_GRAD 0OPTIMIZER_STEP 3OPTIMIZER_STEP")[0]);

  Schedule asynchronous = schedule;
  asynchronous.weights = WeightPolicy::kStashed;
  CHECK_THROWS_AS(lower(asynchronous), ScheduleError);
}

TEST_CASE("a step that takes the gradients of one copy only is refused") {
  const Schedule unsummed =
      parse_schedule("microbatches: 2\nstages: 0/0/0 1/0/1\n0F0 0B0 0OPTIMIZER_STEP\n1F1 1B1 1OPTIMIZER_STEP");
  const std::vector<Violation> found = validate(unsummed);
  REQUIRE(found.size() == 2);
  CHECK(to_text(found[0]) ==
        "rank 0, position 2: 0OPTIMIZER_STEP takes 1 weight gradients that are not reduced; add "
        "0REDUCE_GRAD ahead (sharding)");
}

TEST_CASE("a lowered schedule is not lowered again") {
  CHECK_THROWS_AS(lower(lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 2}))), ScheduleError);
}

}  // namespace plumb::test
