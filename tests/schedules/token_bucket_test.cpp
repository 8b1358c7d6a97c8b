#include "schedules/token_bucket.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_SUITE("unit") {
  TEST_CASE("without a burst a message leaves when those before it have, and its own time has passed") {
    TokenBucket bucket;
    CHECK(bucket.pass(SimTime{5}, SimTime{10}, SimTime{0}) == SimTime{15});
    CHECK(bucket.pass(SimTime{6}, SimTime{5}, SimTime{0}) == SimTime{20});
    CHECK(bucket.pass(SimTime{40}, SimTime{1}, SimTime{0}) == SimTime{41});
  }

  TEST_CASE("a burst passes at once after an idle time, and fills again with time") {
    TokenBucket bucket;
    const SimTime burst{10};
    CHECK(bucket.pass(SimTime{0}, SimTime{6}, burst) == SimTime{0});
    CHECK(bucket.pass(SimTime{0}, SimTime{6}, burst) == SimTime{2});    // 4 of it passes at once
    CHECK(bucket.pass(SimTime{7}, SimTime{10}, burst) == SimTime{12});  // half of the bucket has come back
    CHECK(bucket.pass(SimTime{100}, SimTime{10}, burst) == SimTime{100});
  }
}

}  // namespace plumb::test
