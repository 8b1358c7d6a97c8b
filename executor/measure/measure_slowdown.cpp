#include "executor/measure/measure_slowdown.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/measure/median.h"
#include "executor/transport/communicator.h"
#include "executor/transport/in_process_transport.h"
#include "kernels/cpu/products/gemm.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

constexpr int kLeastSlowdownRepeats = 3;
constexpr int kMostSlowdownRepeats = 100;
constexpr GemmSize kProduct{.m = 192, .n = 192, .k = 192};

struct Times {
  Seconds compute{0};
  Seconds overlap{0};  ///< time of the products during which the all-reduce was under way
};

/// Returns [member * repeats + repeat] the times of `products` products, beside an all-reduce of `bytes` or alone.
/// Without products the overlap is the whole all-reduce.
std::vector<Times> times_of(const SlowdownSample& of, int products, int repeats, bool beside) {
  const Clock clock = monotonic_clock();
  InProcessTransport transport({.ranks = of.members}, clock);
  std::vector<int> ranks(static_cast<std::size_t>(of.members));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<Times> times(ranks.size() * static_cast<std::size_t>(repeats));
  const auto work = [&](int rank) {
    Communicator group(transport, {"measured group", ranks}, rank, clock);
    std::vector<float> values(static_cast<std::size_t>(of.bytes / 4));
    std::vector<float> x(static_cast<std::size_t>(kProduct.m * kProduct.k), 0.5F);
    std::vector<float> weight(static_cast<std::size_t>(kProduct.n * kProduct.k), 0.5F);
    std::vector<float> y(static_cast<std::size_t>(kProduct.m * kProduct.n));
    for (int i = 0; i < repeats; ++i) {
      group.run(all_reduce({}));  // the members meet
      const SimTime start = clock();
      const CollectiveTicket sum = beside ? group.start(all_reduce(values)) : CollectiveTicket{};
      for (int p = 0; p < products; ++p) linear_forward(y.data(), x.data(), weight.data(), kProduct);
      const SimTime computed = clock();
      Times& one = times[static_cast<std::size_t>(rank) * repeats + i];
      one.compute = to_seconds(computed - start);
      if (!sum.is_open()) continue;
      const SimTime end = group.wait(sum).end;
      one.overlap = to_seconds((products == 0 ? end : std::min(end, computed)) - start);
    }
  };
  std::vector<std::thread> threads;
  for (const int rank : ranks) threads.emplace_back(work, rank);
  for (std::thread& thread : threads) thread.join();
  return times;
}

Seconds median_time(const std::vector<Times>& times, Seconds Times::*what) {
  std::vector<Seconds> values;
  for (const Times& one : times) values.push_back(one.*what);
  return median_of(std::move(values));
}

}  // namespace

SlowdownSample measure_collective_slowdown(const SlowdownMeasureOptions& options) {
  if (options.members < 2 || options.bytes < 4) {
    throw SpecError(
        fmt::format("the slowdown beside all-reduces of {} bytes among {} ranks: measure 4 or more among "
                    "2 or more",
                    options.bytes, options.members));
  }
  use_one_blas_thread();
  SlowdownSample sample{.members = options.members, .bytes = options.bytes, .product_edge = kProduct.m};
  constexpr int kTrialProducts = 8;
  constexpr int kMostProducts = 1'000'000;
  const Seconds product = median_time(times_of(sample, kTrialProducts, 3, false), &Times::compute) / kTrialProducts;
  const Seconds sum = median_time(times_of(sample, 0, 3, true), &Times::overlap);
  sample.collective_alone = sum;
  const int products =
      static_cast<int>(std::clamp(2 * sum / std::max(product, Seconds{1e-7}), 1.0, double{kMostProducts}));
  const Seconds once = products * product * 2 + sum;
  sample.repeats = static_cast<int>(std::clamp(options.budget / std::max(once, Seconds{1e-7}),
                                               double{kLeastSlowdownRepeats}, double{kMostSlowdownRepeats}));
  sample.alone = median_time(times_of(sample, products, sample.repeats, false), &Times::compute);
  const std::vector<Times> beside = times_of(sample, products, sample.repeats, true);
  sample.beside = median_time(beside, &Times::compute);
  sample.collective = median_time(beside, &Times::overlap);
  return sample;
}

}}  // namespace plumb::executor
