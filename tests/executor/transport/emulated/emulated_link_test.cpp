#include "executor/transport/emulated/emulated_link.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/executor/timed/milliseconds.h"

namespace plumb::test {
TEST_CASE("without a burst a message takes bytes by bandwidth, and its latency delays nobody else") {
  const EmulatedLink link({.latency = Seconds{1e-3}, .bytes_per_second = 1e8});
  TokenBucket card;
  const TransferTimes first = link.send(card, ms(5), 1'000'000);
  CHECK(first.start == ms(5));
  CHECK(first.end == ms(16));
  const TransferTimes second = link.send(card, ms(6), 500'000);
  CHECK(second.start == ms(15));
  CHECK(second.end == ms(21));
  CHECK(link.send(card, ms(40), 100'000).end == ms(42));
}

TEST_CASE("a burst passes at once after an idle time, and fills again at the rate") {
  const EmulatedLink link({.latency = Seconds{0}, .bytes_per_second = 1e8}, 1'000'000);
  TokenBucket card;
  CHECK(link.send(card, ms(0), 600'000).end == ms(0));
  CHECK(link.send(card, ms(0), 600'000).end == ms(2));     // 400,000 pass at once
  CHECK(link.send(card, ms(7), 1'000'000).end == ms(12));  // half of the bucket has come back
  CHECK(link.send(card, ms(100), 1'000'000).end == ms(100));
}

TEST_CASE("a link without limits adds its latency alone") {
  const EmulatedLink link({.latency = Seconds{2e-3}});
  TokenBucket card;
  CHECK(link.send(card, ms(1), 1'000'000'000).end == ms(3));
  CHECK(link.send(card, ms(1), 1'000'000'000).end == ms(3));
}

TEST_CASE("a link that cannot be is refused") {
  CHECK_THROWS_AS(EmulatedLink({.latency = Seconds{-1}}), SpecError);
  CHECK_THROWS_AS(EmulatedLink({.bytes_per_second = 0}), SpecError);
  CHECK_THROWS_WITH_AS(EmulatedLink({.latency = Seconds{0}, .bytes_per_second = 1e9}, -1),
                       "an emulated link of 0 s latency, 1000000000 bytes/s and a burst of -1 bytes: the first and the "
                       "last must not be negative, the bandwidth must be positive",
                       SpecError);
}

}  // namespace plumb::test
