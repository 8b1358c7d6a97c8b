#include "executor/timed/timed_spec.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "executor/spec/fingerprint.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

/// Share of the machine's memory that gradients and messages may take.
constexpr double kMemoryShare = 0.5;
constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

}  // namespace

std::vector<std::int64_t> bucket_bytes(const StageCosts& costs) {
  std::vector<std::int64_t> bytes;
  for (const std::vector<Segment>& part : costs.segments[static_cast<std::size_t>(Op::kReduceGrad)]) {
    bytes.push_back(0);
    for (const Segment& segment : part)
      if (segment.kind == Segment::Kind::kCollective) bytes.back() += segment.bytes;
  }
  return bytes;
}

std::int64_t gradient_bytes(const StageCosts& costs) {
  const std::vector<std::int64_t> buckets = bucket_bytes(costs);
  return std::accumulate(buckets.begin(), buckets.end(), std::int64_t{0});
}

CostTable shrink_bytes(CostTable costs, double factor) {
  if (!(factor >= 1)) throw SpecError(fmt::format("bytes shrunk by {}: give a factor of 1 or more", factor));
  const auto shrink = [factor](std::int64_t& bytes) {
    if (bytes > 0) bytes = std::max<std::int64_t>(1, std::llround(static_cast<double>(bytes) / factor));
  };
  for (StageCosts& stage : costs.stages) {
    shrink(stage.activation_message_bytes);
    shrink(stage.gradient_message_bytes);
    for (std::vector<Segment>& part : stage.segments[static_cast<std::size_t>(Op::kReduceGrad)])
      for (Segment& segment : part) shrink(segment.bytes);
  }
  costs.default_link.bytes_per_second /= factor;
  for (auto& [ranks, link] : costs.links) link.bytes_per_second /= factor;
  return costs;
}

void require_timed(const TimedSpec& spec) {
  if (spec.costs.stages.size() != spec.schedule.stages.size())
    throw SpecError("the cost table has not a row for each stage of the schedule");
  if (!spec.speeds.empty() && spec.speeds.size() != spec.schedule.ranks.size())
    throw SpecError("speeds are given for some of the ranks only: give one for each, or none");
  double bytes = 0;  // each stage's gradients, and a message each way with its copy under way
  for (const StageCosts& stage : spec.costs.stages)
    bytes += static_cast<double>(gradient_bytes(stage)) +
             3 * static_cast<double>(stage.activation_message_bytes + stage.gradient_message_bytes);
  bytes *= spec.grid.data;
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes > kMemoryShare * memory)
    throw SpecError(
        fmt::format("the timed backend moves real bytes, and the ranks' gradients and messages take {:.1f} "
                    "GiB, of this machine's {:.1f} GiB: shrink them (--shrink K keeps the times)",
                    bytes / kBytesPerGib, memory / kBytesPerGib));
}

std::uint64_t fingerprint(const TimedSpec& spec) {
  Fingerprint print;
  for (const int degree : {spec.grid.pipeline, spec.grid.data, spec.steps}) print.add(degree);
  print.add(spec.schedule);
  for (const StageCosts& stage : spec.costs.stages) {
    print.add(stage.activation_message_bytes);
    print.add(stage.gradient_message_bytes);
    for (const SegmentsByPart& parts : stage.segments)
      for (const std::vector<Segment>& part : parts)
        for (const Segment& segment : part) {
          print.add(segment.seconds.count());
          print.add(segment.bytes);
        }
  }
  return print.value();
}

}}  // namespace plumb::executor
