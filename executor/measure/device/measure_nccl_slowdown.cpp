#include "executor/measure/device/measure_nccl_slowdown.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "executor/measure/median.h"
#include "executor/measure/time_left.h"

namespace plumb { inline namespace executor {
namespace {

constexpr std::array kSlowingOps = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                    CollectiveKind::kReduceScatter};

constexpr std::int64_t kFirstEdge = 64, kFirstBytes = 1 << 20;
constexpr int kLeastProducts = 4, kMostProducts = 1000;
constexpr int kLeastNcclRepeats = 3, kMostNcclRepeats = 20;
constexpr double kForSizes = 0.25;  // share of the budget that the fewest repeats of a size may take
// Products of the fewest repeats: alone, beside and ahead, for three collectives.
constexpr double kProductsInAll = 200;
constexpr double kRoundsInAll = 60;  // rounds of the fewest repeats, in times of a collective

/// Returns the products that run ahead, since the host enqueues a product much faster than a GPU computes it.
int lead_of(int products) {
  return std::max(kLeastProducts, products / 4);
}

class Overlaps {
 public:
  Overlaps(NcclDevices& devices, const NcclSlowdownOptions& options) : devices_(devices), half_(options.half) {}

  std::vector<OverlapTimes> run(int products, std::optional<NcclRound> round) {
    return devices_.overlap(
        {.half = half_, .product_edge = edge, .products = products, .lead = lead_of(products), .round = round});
  }

  Seconds products_alone(int products) { return median_of(each(run(products, {}), &OverlapTimes::products)); }
  Seconds round_alone(const NcclRound& round) { return median_of(each(run(0, round), &OverlapTimes::collective)); }

  /// Returns [device] one of the times.
  static std::vector<Seconds> each(const std::vector<OverlapTimes>& all, Seconds OverlapTimes::*what) {
    std::vector<Seconds> times;
    for (const OverlapTimes& one : all) times.push_back(one.*what);
    return times;
  }

  std::int64_t edge = kFirstEdge;

 private:
  NcclDevices& devices_;
  std::optional<HalfFormat> half_;
};

/// Sets the edge to the largest that fits. Returns the time of one of its products.
Seconds choose_products(Overlaps& overlaps, const NcclSlowdownOptions& options) {
  const auto timed = [&] { return overlaps.products_alone(kLeastProducts) / kLeastProducts; };
  Seconds time = timed();
  while (overlaps.edge * 2 <= options.most_edge && 8 * time * kProductsInAll < kForSizes * options.budget) {
    overlaps.edge *= 2;
    time = timed();
  }
  return time;
}

/// Returns the size of the largest buffer that fits.
std::int64_t choose_bytes(Overlaps& overlaps, const NcclSlowdownOptions& options, std::int64_t least) {
  std::int64_t bytes = std::min(kFirstBytes, options.most_bytes);
  while (bytes * 4 <= options.most_bytes) {
    const Seconds time = overlaps.round_alone({.op = kSlowingOps.front(), .bytes = bytes / least * least});
    if (4 * time * kRoundsInAll > kForSizes * options.budget) break;
    bytes *= 4;
  }
  return std::max(least, bytes / least * least);
}

SlowdownSample measured(Overlaps& overlaps, SlowdownSample sample, Seconds product, Seconds budget) {
  const NcclRound round{.op = sample.op, .bytes = sample.bytes};
  std::vector<Seconds> rounds;
  for (int i = 0; i < kLeastNcclRepeats; ++i) rounds.push_back(overlaps.round_alone(round));
  sample.collective_alone = median_of(rounds);
  const double wanted = std::ceil(2 * sample.collective_alone / std::max(product, Seconds{1e-9}));
  const int products = static_cast<int>(std::clamp(wanted, double{kLeastProducts}, double{kMostProducts}));
  const Seconds once = 2 * (products + lead_of(products)) * product + sample.collective_alone;
  sample.repeats = static_cast<int>(std::clamp(budget / once, double{kLeastNcclRepeats}, double{kMostNcclRepeats}));
  std::vector<Seconds> alone, beside, collective;
  for (int i = 0; i < sample.repeats; ++i) {
    std::ranges::copy(Overlaps::each(overlaps.run(products, {}), &OverlapTimes::products), std::back_inserter(alone));
    const std::vector<OverlapTimes> both = overlaps.run(products, round);
    std::ranges::copy(Overlaps::each(both, &OverlapTimes::products), std::back_inserter(beside));
    std::ranges::copy(Overlaps::each(both, &OverlapTimes::collective), std::back_inserter(collective));
  }
  sample.alone = median_of(std::move(alone));
  sample.beside = median_of(std::move(beside));
  sample.collective = median_of(std::move(collective));
  return sample;
}

}  // namespace

std::vector<SlowdownSample> measure_nccl_slowdown(NcclDevices& devices, const NcclSlowdownOptions& options) {
  if (devices.ranks() < 2) return {};
  const TimeLeft time_left(options.budget);
  Overlaps overlaps(devices, options);
  const Seconds product = choose_products(overlaps, options);
  const std::int64_t bytes = choose_bytes(overlaps, options, 4 * std::int64_t{devices.ranks()});
  std::vector<SlowdownSample> samples;
  double ops_left = kSlowingOps.size();
  for (const CollectiveKind op : kSlowingOps) {
    const Seconds share = time_left() / ops_left--;
    if (!samples.empty() && share <= Seconds{0}) break;
    samples.push_back(measured(overlaps,
                               {.op = op, .members = devices.ranks(), .bytes = bytes, .product_edge = overlaps.edge},
                               product, std::max(share, Seconds{0})));
  }
  return samples;
}

}}  // namespace plumb::executor
