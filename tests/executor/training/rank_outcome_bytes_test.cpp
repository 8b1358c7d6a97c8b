#include "executor/training/rank_outcome_bytes.h"

#include <doctest/doctest.h>

#include "executor/transport/transport.h"

namespace plumb::test {
namespace {

RankOutcome sample_outcome() {
  RankOutcome outcome{.timelines = {{}, {}},
                      .ends = {SimTime{7}, SimTime{9}},
                      .losses = {{{2, 0.5}, {3, 0.25}}, {}},
                      .loss_scales = {1, 2},
                      .skipped_steps = 3,
                      .peak_memory_bytes = 4,
                      .peak_host_bytes = 5,
                      .allocations = 6,
                      .parameter_bytes = {.weights = 7, .gradients = 8, .optimizer = 9},
                      .tensor_group_bytes = {1, 2, 3}};
  outcome.timelines[1].spans = {{.start = SimTime{1}, .end = SimTime{3}, .action = {.stage = 2, .microbatch = 5}}};
  return outcome;
}

}  // namespace

TEST_CASE("a rank's outcome comes back from its bytes") {
  const RankOutcome outcome = sample_outcome();
  const RankOutcome back = rank_outcome_from_bytes(to_bytes(outcome));
  CHECK(back.timelines == outcome.timelines);
  CHECK(back.ends == outcome.ends);
  REQUIRE(back.losses.size() == 2);
  REQUIRE(back.losses[0].size() == 2);
  CHECK(back.losses[0][1].microbatch == 3);
  CHECK(back.losses[0][1].sum == 0.25);
  CHECK(back.loss_scales == outcome.loss_scales);
  CHECK(back.skipped_steps == 3);
  CHECK(back.peak_memory_bytes == 4);
  CHECK(back.peak_host_bytes == 5);
  CHECK(back.allocations == 6);
  CHECK(back.parameter_bytes == outcome.parameter_bytes);
  CHECK(back.tensor_group_bytes == outcome.tensor_group_bytes);
}

TEST_CASE("an outcome's bytes that were cut short or run on are refused, wherever") {
  const std::string bytes = to_bytes(sample_outcome());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_AS(rank_outcome_from_bytes(std::string_view(bytes).substr(0, size)), RunError);
  CHECK_THROWS_AS(rank_outcome_from_bytes(bytes + "x"), RunError);
}

}  // namespace plumb::test
