#include "schedules/dependencies/weight_messages.h"

#include <doctest/doctest.h>

#include "schedules/dependencies/dependencies.h"
#include "schedules/dependencies/progress.h"
#include "schedules/forms/text_form.h"

namespace plumb::test {
namespace {

std::vector<std::int32_t> awaited_by(const WeightMessages& messages, std::int32_t id) {
  const auto awaited = messages.awaited_by(id);
  return {awaited.begin(), awaited.end()};
}

}  // namespace

TEST_CASE("a schedule without messages of weights has none, and every rank keeps the state of its stages") {
  const Schedule schedule = parse_schedule("0F0 0B0\n1F0 1B0\n");
  CHECK_FALSE(weights_travel(schedule));
  CHECK_FALSE(weight_messages(schedule).any());
  CHECK(weight_messages(schedule).awaited_by(2).empty());
  CHECK(stages_with_state(schedule) == std::vector<bool>{true, true});
}

TEST_CASE("computing waits for the first weights since RESHARD, RESHARD for all, and a sum for the gradients so far") {
  // ids: rank 0 has 0 to 5, rank 1 has 6 to 11.
  const Schedule schedule = parse_schedule(
      "stages: 0/0/0 1/0/1\n"
      "0SEND_WEIGHTS1 0SEND_WEIGHTS1 0F0 0B0 0RECV_WGRAD1 0OPTIMIZER_STEP\n"
      "1RECV_WEIGHTS0 1F1 1RECV_WEIGHTS0 1B1 1SEND_WGRAD0 1RESHARD\n");
  const WeightMessages messages = weight_messages(schedule);
  REQUIRE(messages.any());
  CHECK(messages.partner == std::vector<std::int32_t>{6, 8, -1, -1, 10, -1, 0, -1, 1, -1, 4, -1});
  CHECK(awaited_by(messages, 2).empty());                              // 0F0: its rank owns the weights
  CHECK(awaited_by(messages, 5) == std::vector<std::int32_t>{10});     // 0OPTIMIZER_STEP
  CHECK(awaited_by(messages, 7) == std::vector<std::int32_t>{0});      // 1F1
  CHECK(awaited_by(messages, 9) == std::vector<std::int32_t>{0});      // 1B1
  CHECK(awaited_by(messages, 10).empty());                             // 1SEND_WGRAD0: only its own gradient
  CHECK(awaited_by(messages, 11) == std::vector<std::int32_t>{0, 1});  // 1RESHARD
  CHECK(stages_with_state(schedule) == std::vector<bool>{true, false});
}

TEST_CASE("weights that are handed on wait for their arrival, and their channel is first in, first out") {
  const Schedule schedule = parse_schedule(
      "stages: 0/0/0 1/0/1 2/0/2\n"
      "0SEND_WEIGHTS1 0F0\n"
      "1RECV_WEIGHTS0 1SEND_WEIGHTS2 1F1\n"
      "2RECV_WEIGHTS1 2F2\n");
  // ids: 0SEND_WEIGHTS1 is 0, 1SEND_WEIGHTS2 is 3, 2F2 is 6
  const std::vector<Dependency> found = dependencies(schedule, Sends::kBuffered);
  const auto has = [&found](const Dependency& wanted) { return std::ranges::find(found, wanted) != found.end(); };
  CHECK(has({0, 3, Wait::kDelivered, Reason::kMessage}));
  CHECK(has({3, 6, Wait::kDelivered, Reason::kMessage}));
  const std::vector<Dependency> rendezvous = dependencies(schedule, Sends::kRendezvous);
  CHECK(std::ranges::count(rendezvous, Dependency{5, 3, Wait::kStart, Reason::kRendezvous}) == 1);
}

TEST_CASE("ranks that wait for each other's weights do not run to their ends") {
  const char* const stages = "microbatches: 2\nstages: 0/0/0 0/1/0 1/0/1 1/1/1\n";
  const std::string fine = std::string(stages) +
                           "0SEND_WEIGHTS2 1RECV_WEIGHTS3 0F0 1F0 1B0 0B0\n"
                           "2RECV_WEIGHTS0 3SEND_WEIGHTS1 2F1 3F1 3B1 2B1\n";
  const std::string crossed = std::string(stages) +
                              "1RECV_WEIGHTS3 1F0 0SEND_WEIGHTS2 0F0\n"
                              "2RECV_WEIGHTS0 2F1 3SEND_WEIGHTS1 3F1\n";
  CHECK(runs_to_end(parse_schedule(fine)));
  CHECK_FALSE(runs_to_end(parse_schedule(crossed)));
}

}  // namespace plumb::test
