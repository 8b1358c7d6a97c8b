#include "executor/measure/measure_collectives.h"

#include <doctest/doctest.h>

#include <set>
#include <utility>

#include "schedules/error.h"

namespace plumb::test {

TEST_CASE("every collective is timed by every algorithm that it has, at every size") {
  const auto samples = measure_collectives({.members = 3, .sizes_bytes = {4, 4096}, .budget = Seconds{0.05}});
  std::set<std::pair<CollectiveKind, CollectiveAlgorithm>> kinds;
  for (const CollectiveSample& sample : samples) {
    kinds.insert({sample.op, sample.algorithm});
    CHECK(sample.members == 3);
    CHECK(sample.repeats >= 5);
    CHECK(sample.fastest.count() > 0);
    CHECK(sample.fastest <= sample.median);
  }
  CHECK(kinds.size() == 2 * kCollectiveKindCount - 2);  // all_to_all and shift have one
  CHECK(samples.size() == 2 * kinds.size());
}

TEST_CASE("bus bandwidth counts what crosses the busiest link") {
  CollectiveSample sample{.op = CollectiveKind::kAllReduce, .members = 4, .bytes = 8000, .median = Seconds{1}};
  CHECK(algorithm_bytes_per_second(sample) == 8000);
  CHECK(bus_bytes_per_second(sample) == 12000);
  sample.op = CollectiveKind::kAllGather;
  CHECK(bus_bytes_per_second(sample) == 6000);
  sample.op = CollectiveKind::kBroadcast;
  CHECK(bus_bytes_per_second(sample) == 8000);
}

TEST_CASE("a group of one, and no bytes, are refused") {
  CHECK_THROWS_AS(measure_collectives({.members = 1}), SpecError);
  CHECK_THROWS_AS(measure_collectives({.members = 2, .sizes_bytes = {0}}), SpecError);
}

}  // namespace plumb::test
