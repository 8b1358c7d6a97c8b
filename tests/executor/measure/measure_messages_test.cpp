#include "executor/measure/measure_messages.h"

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {

TEST_CASE("messages of each size are timed as often as was asked, larger ones longer") {
  const std::vector<KernelSample> samples =
      measure_messages_of_threads({.sizes_bytes = {4, 64 << 20}, .repeats = 3, .idle = Seconds{1e-3}});
  REQUIRE(samples.size() == 2);
  for (const KernelSample& sample : samples) {
    CHECK(sample.kernel == "message");
    CHECK(sample.repeats == 3);
    CHECK(sample.fastest <= sample.median);
    CHECK(sample.median <= sample.slowest);
  }
  CHECK(samples[0].shape == std::vector<std::int64_t>{4});
  CHECK(samples[1].fastest > samples[0].fastest);  // 64 MiB against 4 bytes
}

TEST_CASE("messages of nothing, or none, are refused") {
  CHECK_THROWS_AS(measure_messages_of_threads({.sizes_bytes = {0}}), SpecError);
  CHECK_THROWS_AS(measure_messages_of_threads({.repeats = 0}), SpecError);
}

}  // namespace plumb::test
