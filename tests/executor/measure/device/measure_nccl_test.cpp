#include "executor/measure/device/measure_nccl.h"

#include <doctest/doctest.h>

#include <set>
#include <utility>

#include "executor/cuda_library/nccl_library.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"

namespace plumb::test {
namespace {

/// Devices whose collectives take 10 us and a nanosecond a byte, and are wrong in place.
class RoundDevices : public NcclDevices {
 public:
  int ranks() const override { return 4; }
  Seconds run(const NcclRound& round, int times) override {
    ++calls;
    rounds += times;
    return times * Seconds{1e-5 + 1e-9 * static_cast<double>(round.bytes)};
  }
  std::int64_t wrong_values(const NcclRound& round) override { return round.in_place ? 3 : 0; }
  std::vector<OverlapTimes> overlap(const OverlapWork&) override { return {}; }

  int calls = 0;
  int rounds = 0;
};

}  // namespace

TEST_CASE("every collective is timed by size, out of place and in place, behind a warm-up") {
  RoundDevices devices;
  const std::vector<NcclSample> samples =
      measure_nccl(devices, {.sizes_bytes = {1000, 1 << 20}, .warm_up = 5, .repeats = 20, .budget = Seconds{1000}});
  CHECK(samples.size() == 2 * (2 * 5 + 2));  // all-to-all and shift have no in-place form
  CHECK(devices.rounds == 24 * 25);
  std::set<std::pair<CollectiveKind, bool>> kinds;
  for (const NcclSample& sample : samples) {
    kinds.emplace(sample.sample.op, sample.in_place);
    CHECK(sample.sample.members == 4);
    CHECK((sample.sample.bytes == 992 || sample.sample.bytes == 1 << 20));  // divided by 4 ranks of 4 bytes
    CHECK(sample.sample.median.count() == doctest::Approx(1e-5 + 1e-9 * static_cast<double>(sample.sample.bytes)));
    CHECK(sample.wrong == (sample.in_place ? 3 : 0));
  }
  CHECK(kinds.size() == 12);
}

TEST_CASE("bus bandwidth is that of nccl-tests") {
  RoundDevices devices;
  for (const NcclSample& sample : measure_nccl(devices, {.sizes_bytes = {1 << 20}, .budget = Seconds{1000}})) {
    const double algorithm = algorithm_bytes_per_second(sample.sample);
    double factor = 1;
    if (sample.sample.op == CollectiveKind::kAllReduce) factor = 2 * 3.0 / 4;
    if (sample.sample.op == CollectiveKind::kAllGather || sample.sample.op == CollectiveKind::kReduceScatter ||
        sample.sample.op == CollectiveKind::kAllToAll)
      factor = 3.0 / 4;
    CHECK(bus_bytes_per_second(sample.sample) == doctest::Approx(factor * algorithm));
  }
}

TEST_CASE("a small budget leaves fewer rounds, at least one") {
  RoundDevices devices;
  for (const NcclSample& sample : measure_nccl(devices, {.sizes_bytes = {1 << 30}, .budget = Seconds{0.001}}))
    CHECK(sample.sample.repeats == 1);
  CHECK_THROWS_AS(measure_nccl(devices, {.sizes_bytes = {0}}), SpecError);
}

TEST_CASE("without time there are still messages from which a link can be told") {
  RoundDevices devices;
  std::set<std::int64_t> shifts, sums;
  for (const NcclSample& sample :
       measure_nccl(devices, {.sizes_bytes = {64, 1 << 20, 1 << 24, 1 << 26}, .budget = Seconds{-1}})) {
    if (sample.sample.op == CollectiveKind::kShift) shifts.insert(sample.sample.bytes);
    if (sample.sample.op == CollectiveKind::kAllReduce) sums.insert(sample.sample.bytes);
  }
  CHECK(shifts == std::set<std::int64_t>{64, 1 << 20, 1 << 24});
  CHECK(sums == std::set<std::int64_t>{64});
}

TEST_CASE("without the library beside the tool NCCL is missing in a sentence") {
  CHECK_THROWS_AS(open_nccl_library("/nowhere", "0"), RunError);
}

}  // namespace plumb::test
