#include "executor/measure/device/measure_nccl.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "executor/measure/time_left.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

constexpr std::array kMeasuredOps = {
    CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
    CollectiveKind::kReduce,    CollectiveKind::kAllToAll,  CollectiveKind::kShift};
static_assert(kMeasuredOps.size() == kMeasuredCollectives);

constexpr std::int64_t kLatencyBytes = 64 << 10;  // up to this size latency decides the time of a round
constexpr std::int64_t kLinkBytes = 16 << 20;     // messages of this size are needed to know what a link carries

/// Returns the rounds that `budget` allows, by the time of the warm-up.
int rounds_within(Seconds budget, Seconds warm_up, int warm_up_rounds, int wanted) {
  const double each = warm_up.count() / std::max(1, warm_up_rounds);
  if (each <= 0) return wanted;
  return std::clamp(static_cast<int>(budget.count() / each), 1, wanted);
}

}  // namespace

std::vector<NcclSample> measure_nccl(NcclDevices& devices, const NcclMeasureOptions& options) {
  const std::int64_t least = 4 * static_cast<std::int64_t>(std::max(1, devices.ranks()));
  for (const std::int64_t size : options.sizes_bytes)
    if (size <= 0) throw SpecError(fmt::format("a message of {} bytes cannot be timed: give sizes above 0", size));
  const double series = static_cast<double>(kMeasuredOps.size() * options.sizes_bytes.size() * 2);
  const Seconds each_series = options.budget / std::max(1.0, series);
  std::vector<NcclSample> samples;
  const TimeLeft time_left(options.budget);
  double ops_left = kMeasuredOps.size();
  for (const CollectiveKind op : kMeasuredOps) {
    const TimeLeft of_op(time_left() / ops_left--);
    Seconds last{0};  // time of the last size, with its check
    std::int64_t last_size = 0;
    for (const std::int64_t size : options.sizes_bytes) {
      const double growth =
          static_cast<double>(std::max(size, kLatencyBytes)) / static_cast<double>(std::max(last_size, kLatencyBytes));
      const bool has_to_be = op == CollectiveKind::kShift && size <= kLinkBytes;
      if (last_size > 0 && growth * last > of_op() && !has_to_be) continue;
      const Seconds before = of_op();
      for (const bool in_place : {false, true}) {
        const bool exchanges = op == CollectiveKind::kAllToAll || op == CollectiveKind::kShift;
        if (in_place && exchanges) continue;  // the values that arrive would overwrite those that leave
        const NcclRound round{.op = op, .bytes = std::max(least, size / least * least), .in_place = in_place};
        const Seconds warm_up = devices.run(round, options.warm_up);
        const int repeats = rounds_within(each_series, warm_up, options.warm_up, options.repeats);
        const Seconds mean = devices.run(round, repeats) / repeats;
        samples.push_back({.sample = {.op = op,
                                      .members = devices.ranks(),
                                      .bytes = round.bytes,
                                      .median = mean,
                                      .fastest = mean,
                                      .repeats = repeats},
                           .in_place = in_place,
                           .wrong = devices.wrong_values(round)});
      }
      last = before - of_op();
      last_size = size;
    }
  }
  return samples;
}

}}  // namespace plumb::executor
