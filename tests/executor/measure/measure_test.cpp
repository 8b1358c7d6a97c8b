#include "executor/measure/measure.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "executor/measure/host/measure_kernels.h"
#include "executor/measure/measure_transport.h"
#include "schedules/error.h"

namespace plumb::test {
namespace {

void check_order(const KernelSample& sample) {
  CAPTURE(sample.kernel);
  CHECK(sample.fastest.count() > 0);
  CHECK(sample.fastest <= sample.median);
  CHECK(sample.median <= sample.slowest);
  CHECK(sample.repeats >= 3);
}

}  // namespace

TEST_CASE("the ladders hold every kind of kernel that a cpu has") {
  std::set<KernelKind> kinds;
  for (const auto& ladder : {gemm_ladder(), attention_ladder(), other_kernel_ladder()})
    for (const KernelCall& call : ladder) kinds.insert(call.kind);
  CHECK(kinds.size() == kCpuKernelKindCount);
}

TEST_CASE("each kind of kernel can be timed, alone and on two threads at once") {
  std::vector<KernelCall> smallest;
  for (const auto& ladder : {gemm_ladder(), attention_ladder(), other_kernel_ladder()})
    for (const KernelCall& call : ladder) {
      const bool is_known =
          std::ranges::any_of(smallest, [&](const KernelCall& other) { return other.kind == call.kind; });
      if (!is_known) smallest.push_back(call);
    }
  for (const int busy_ranks : {1, 2}) {
    const std::vector<KernelSample> samples = measure_kernels(smallest, busy_ranks, Seconds{2});
    CHECK(samples.size() == smallest.size());
    for (const KernelSample& sample : samples) {
      check_order(sample);
      CHECK(sample.busy_ranks == busy_ranks);
    }
  }
}

TEST_CASE("calls that would take too long are left out") {
  const std::vector<KernelCall> calls = {kernel_call(KernelKind::kResidualAdd, {32, 64}),
                                         kernel_call(KernelKind::kResidualAdd, {1 << 20, 1 << 20})};
  CHECK(measure_kernels(calls, 1, Seconds{0.5}).size() == 1);
}

TEST_CASE("what other programs have of the processors is not in a kernel's time") {
  const std::vector<KernelCall> calls = {kernel_call(KernelKind::kGemm, {128, 256, 256, 1, 0})};
  const Seconds alone = measure_kernels(calls, 1, Seconds{0.2})[0].median;
  std::atomic<bool> enough = false;
  std::vector<std::thread> others;
  for (unsigned int i = 0; i < 8 * std::thread::hardware_concurrency(); ++i)
    others.emplace_back([&] {
      while (!enough) {
      }
    });
  const Seconds beside = measure_kernels(calls, 1, Seconds{0.2})[0].median;  // some nine times as long by the clock
  enough = true;
  for (std::thread& other : others) other.join();
  CHECK(beside < 3 * alone);
}

TEST_CASE("messages and all-reduces are timed by size and group") {
  const std::vector<KernelSample> samples = measure_transport(Seconds{0.1});
  CHECK(std::ranges::count(samples, "message", &KernelSample::kernel) == 6);
  CHECK(std::ranges::count(samples, "all_reduce", &KernelSample::kernel) == 12);
  for (const KernelSample& sample : samples) check_order(sample);
}

TEST_CASE("a measurement says what it was made on, and measures what is asked for alone") {
  const Measurement measured = measure_cpu(
      {.budget = Seconds{0.05}, .date = "2025-01-31", .gemm = false, .attention = false, .other_kernels = false});
  CHECK(measured.backend == "cpu");
  CHECK(measured.date == "2025-01-31");
  CHECK(!measured.device.empty());
  CHECK(measured.cores >= 1);
  CHECK(measured.memory_bytes > 0);
  CHECK(measured.samples.size() == 18);
}

TEST_CASE("no ranks and no time are refused") {
  CHECK_THROWS_AS(measure_cpu({.busy_ranks = 0}), SpecError);
  CHECK_THROWS_AS(measure_cpu({.budget = Seconds{0}}), SpecError);
}

}  // namespace plumb::test
