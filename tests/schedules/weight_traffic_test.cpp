#include "schedules/weight_traffic.h"

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"

namespace plumb::test {

TEST_CASE("a rank's traffic is what it sends, and what it holds until it drops it") {
  const Schedule schedule = parse_schedule(
      "stages: 0/0/0 0/1/0 1/0/1 1/1/1\n"
      "0SEND_WEIGHTS2 1SEND_WEIGHTS3 0F0 1F0 1B0 0B0\n"
      "2RECV_WEIGHTS0 3RECV_WEIGHTS1 2F1 2RESHARD 3F1 3B1 3RESHARD 3SEND_WGRAD1\n");
  const std::vector<WeightTraffic> ranks = weight_traffic(schedule);
  REQUIRE(ranks.size() == 2);
  CHECK(ranks[0] == WeightTraffic{.weights = 2});
  CHECK(ranks[1] == WeightTraffic{.gradients = 1, .most_held = 2});
}

TEST_CASE("where no weights travel there is none") {
  CHECK(weight_traffic(parse_schedule("0F0 0B0\n")) == std::vector<WeightTraffic>{{}});
}

}  // namespace plumb::test
