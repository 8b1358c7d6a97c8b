#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"
#include "schedules/liveness.h"
#include "schedules/rules/validate.h"
#include "schedules/weight_holders.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {

TEST_CASE("HelixPipe runs a layer's attention on all ranks at a time, and its backwards mirror its forwards") {
  // Two layers, and two lanes with stages 0 to 4 and 5 to 9. Their model parts 1 and 3 are attention: lane 0 attends in
  // layer 0 on rank 1, lane 1 on rank 0, and in layer 1 the other way round.
  CHECK(make_schedule("helixpipe", {.ranks = 2, .microbatches = 2}).ranks ==
        rows("0F0 5F1 6F1 3F0 4F0 9F1 9B1 4B0 3I0 6I1 5B1 0B0\n"
             "1F0 2F0 7F1 8F1 8I1 7B1 2B0 1I0\n"));
}

TEST_CASE("HelixPipe's rounds have two micro-batches in each lane, and one round ends as the next begins") {
  const std::vector<Action> first_rank = make_schedule("helixpipe", {.ranks = 2, .microbatches = 8}).ranks[0];
  const std::vector<Action> forwards(first_rank.begin(), first_rank.begin() + first_rank.size() / 2);
  CHECK(std::vector<std::vector<Action>>{forwards} ==
        rows("0F0 0F1 5F2 5F3 6F2 6F3 3F0 3F1 4F0 0F4 4F1 0F5 9F2 5F6 9F3 5F7 6F6 6F7 3F4 3F5 4F4 4F5 9F6 9F7\n"));
}

TEST_CASE("HelixPipe's products keep their rank in every lane and its attention has no weights") {
  const Schedule schedule = make_schedule("helixpipe", {.ranks = 3, .microbatches = 7, .chunks = 2});
  const int parts = 2 * 3 * 2 + 1;
  REQUIRE(schedule.stages.size() == static_cast<std::size_t>(3 * parts));
  const std::vector<int> holders = weight_holders(schedule);
  for (int stage = 0; stage < 3 * parts; ++stage) {
    const StagePlace& place = schedule.stages[static_cast<std::size_t>(stage)];
    CAPTURE(stage);
    if (place.model_part % 2 == 0) CHECK(place.rank == place.model_part / 2 % 3);
    CHECK(holders[static_cast<std::size_t>(stage)] == (place.model_part % 2 == 0 ? place.model_part : -1));
  }
  for (int part = 1; part < parts; part += 2) {
    std::vector<int> ranks;
    for (int lane = 0; lane < 3; ++lane)
      ranks.push_back(schedule.stages[static_cast<std::size_t>(lane * parts + part)].rank);
    std::ranges::sort(ranks);
    CHECK(ranks == std::vector<int>{0, 1, 2});
  }
  CHECK_FALSE(has_copies(schedule));
}

TEST_CASE("HelixPipe's ranks hold the same activations, rank 0 those of the model's end besides") {
  for (int p = 1; p <= 5; ++p)
    for (int v = 1; v <= 3; ++v)
      for (int m = 1; m <= 4 * p + 1; ++m) {
        INFO("p=", p, " v=", v, " m=", m);
        const Schedule schedule = make_schedule("helixpipe", {.ranks = p, .microbatches = m, .chunks = v});
        CHECK(validate(schedule).empty());
        const std::vector<RankLiveness> held = liveness(schedule);
        for (int r = 0; r < p; ++r) CHECK(held[static_cast<std::size_t>(r)].peak == 2 * m * v + (r == 0 ? m : 0));
      }
}

}  // namespace plumb::test
