#include "executor/measure/device/measure_nccl_slowdown.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace plumb::test {
namespace {

/// Devices that compute at a rate, exchange at another, and do both slower where both go on.
class OverlappingDevices : public NcclDevices {
 public:
  explicit OverlappingDevices(int ranks) : ranks_(ranks) {}

  int ranks() const override { return ranks_; }
  Seconds run(const NcclRound&, int) override { return Seconds{0}; }
  std::int64_t wrong_values(const NcclRound&) override { return 0; }

  std::vector<OverlapTimes> overlap(const OverlapWork& work) override {
    works.push_back(work);
    const double edge = static_cast<double>(work.product_edge);
    const double products = work.products * 2 * edge * edge * edge / flops_per_second;
    double collective = 0;
    if (work.round) collective = 1e-5 + static_cast<double>(work.round->bytes) / bytes_per_second;
    const double slowdown =
        work.round && work.round->op == CollectiveKind::kAllGather ? slowdown_of_gathers : slowdown_of_sums;
    if (work.products > 0) collective *= 1.5;
    // Both until one is over, at 1 / (1 + x); then the rest of the products as alone.
    const double done_beside = std::min(products, collective / (1 + slowdown));
    const double last = products + done_beside * slowdown;
    std::vector<OverlapTimes> times;
    for (int device = 0; device < ranks_; ++device) {
      times.push_back({.products = Seconds{last}, .collective = Seconds{collective}});
      if (device == 0 && has_straggler) times.back().products *= 7;
    }
    return times;
  }

  double flops_per_second = 6e14, bytes_per_second = 2e11;
  double slowdown_of_sums = 0.25, slowdown_of_gathers = 0.125;
  bool has_straggler = false;
  std::vector<OverlapWork> works;

 private:
  int ranks_;
};

}  // namespace

TEST_CASE("what devices lose beside each collective comes out as it is") {
  OverlappingDevices devices(4);
  const std::vector<SlowdownSample> samples =
      measure_nccl_slowdown(devices, {.half = HalfFormat::kBf16, .budget = Seconds{1000}});
  REQUIRE(samples.size() == 3);
  const CollectiveKind ops[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const SlowdownSample& sample = samples[i];
    CHECK(sample.op == ops[i]);
    CHECK(sample.members == 4);
    CHECK(sample.bytes == 64 << 20);
    CHECK(sample.product_edge == 4096);
    CHECK(sample.repeats == 20);
    CHECK(sample.alone >= 2 * sample.collective_alone);
    CHECK(sample.collective / sample.collective_alone == doctest::Approx(1.5));
    CHECK(*slowdown_of(sample) == doctest::Approx(i == 1 ? 0.125 : 0.25).epsilon(1e-9));
  }
  for (const OverlapWork& work : devices.works) {
    CHECK(work.half == HalfFormat::kBf16);
    CHECK(work.lead >= 4);
    if (work.round) CHECK(work.round->bytes % 16 == 0);
  }
}

TEST_CASE("one slow sample of four devices changes nothing") {
  OverlappingDevices devices(4);
  devices.has_straggler = true;
  for (const SlowdownSample& sample : measure_nccl_slowdown(devices, {.budget = Seconds{1000}}))
    CHECK(*slowdown_of(sample) ==
          doctest::Approx(sample.op == CollectiveKind::kAllGather ? 0.125 : 0.25).epsilon(1e-9));
}

TEST_CASE("slow devices have smaller products and buffers within the budget, which the sample says") {
  OverlappingDevices devices(2);
  devices.flops_per_second = 1e9;
  devices.bytes_per_second = 1e9;
  const std::vector<SlowdownSample> samples = measure_nccl_slowdown(devices, {.budget = Seconds{4}});
  REQUIRE(samples.size() == 3);
  CHECK(samples.front().product_edge == 128);  // 200 products of 256 would take 6.7 s of the 1 s for them
  CHECK(samples.front().bytes == 4 << 20);     // 60 rounds of 16 MiB 1.007 s
  CHECK(*slowdown_of(samples.front()) == doctest::Approx(0.25).epsilon(1e-9));
}

TEST_CASE("one device has nobody to exchange with: nothing is measured") {
  OverlappingDevices devices(1);
  CHECK(measure_nccl_slowdown(devices, {}).empty());
  CHECK(devices.works.empty());
}

}  // namespace plumb::test
