#include "executor/timed/timed_spec.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb {
namespace {

/// Of the machine's memory that gradients and messages may take.
constexpr double kMemoryShare = 0.5;
constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

/// FNV-1a (Fowler, Noll, Vo 1991) over 64-bit values.
class Hash {
 public:
  void add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      hash_ ^= (value >> (8 * byte)) & 0xFF;
      hash_ *= 0x100000001B3ULL;
    }
  }
  void add(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
  void add(int value) { add(static_cast<std::int64_t>(value)); }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325ULL;
};

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
  double bytes = 0;  // each stage's gradients, and a message each way with its copy on the way
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
  Hash hash;
  for (const int degree : {spec.grid.pipeline, spec.grid.data, spec.schedule.microbatches, spec.steps})
    hash.add(degree);
  for (const std::vector<Action>& actions : spec.schedule.ranks) {
    hash.add(static_cast<std::int64_t>(actions.size()));
    for (const Action& action : actions) {
      hash.add(static_cast<int>(action.op));
      for (const int number :
           {static_cast<int>(action.part), static_cast<int>(action.stage), static_cast<int>(action.microbatch)})
        hash.add(number);
    }
  }
  for (const StageCosts& stage : spec.costs.stages) {
    hash.add(stage.activation_message_bytes);
    hash.add(stage.gradient_message_bytes);
    for (const SegmentsByPart& parts : stage.segments)
      for (const std::vector<Segment>& part : parts)
        for (const Segment& segment : part) {
          hash.add(segment.seconds.count());
          hash.add(segment.bytes);
        }
  }
  return hash.value();
}

}  // namespace plumb
