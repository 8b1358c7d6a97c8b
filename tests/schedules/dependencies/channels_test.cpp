#include "schedules/dependencies/channels.h"

#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"

namespace plumb::test {

TEST_CASE("stages that lie on the same two ranks share a channel for each direction") {
  // Stages 0 and 2 on rank 0, 1 and 3 on rank 1: 0 -> 1 and 2 -> 3 leave rank 0, 1 -> 2 leaves rank 1.
  const Schedule schedule = make_schedule("interleaved", {.ranks = 2, .microbatches = 2, .chunks = 2});
  const Channels channels = channels_of(schedule, stage_neighbors(schedule));
  CHECK(channels.channels == std::vector<Channel>{{0, 1, Op::kSendActivation},
                                                  {0, 1, Op::kSendGradient},
                                                  {1, 0, Op::kSendActivation},
                                                  {1, 0, Op::kSendGradient}});
  CHECK(channels.of_activations == std::vector<int>{0, 2, 0, -1});
  CHECK(channels.of_gradients == std::vector<int>{-1, 3, 1, 3});
  CHECK(channel_of(channels, {.op = Op::kSendGradient, .stage = 2}) == 1);
}

}  // namespace plumb::test
