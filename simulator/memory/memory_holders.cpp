#include "simulator/memory/memory_holders.h"

#include <algorithm>
#include <map>
#include <utility>

#include "schedules/dependencies/action_table.h"
#include "simulator/memory/memory_changes.h"

namespace plumb { inline namespace simulator {
namespace {

ActionTimes times_of(const Timeline& timeline) {
  ActionTimes times;
  for (const RankTimeline& rank : timeline.ranks) {
    for (const Span& span : rank.spans) {
      times.start.push_back(span.start);
      times.end.push_back(span.end);
    }
  }
  return times;
}

/// Returns how many changes lead up to the peak, all changes of its moment among them.
std::size_t changes_to_peak(const std::vector<MemoryChange>& changes) {
  std::int64_t bytes = 0;
  std::int64_t most = -1;
  std::size_t count = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    bytes += changes[i].bytes;
    const bool moment_ends = i + 1 == changes.size() || changes[i + 1].time != changes[i].time;
    if (!moment_ends || bytes <= most) continue;
    most = bytes;
    count = i + 1;
  }
  return count;
}

std::optional<Action> running_at(const RankTimeline& rank, SimTime time) {
  std::optional<Action> running;
  for (const Span& span : rank.spans) {
    if (span.stream == Stream::kCompute && span.start <= time && (time < span.end || time == span.start))
      running = span.action;
  }
  return running;
}

MemoryPeak peak_of(const std::vector<MemoryChange>& changes) {
  struct Held {
    std::int64_t bytes = 0;
    std::map<int, std::int64_t> by_microbatch;
  };
  std::map<std::pair<MemoryKind, int>, Held> held;
  MemoryPeak peak;
  const std::size_t count = changes_to_peak(changes);
  for (std::size_t i = 0; i < count; ++i) {
    const MemoryChange& change = changes[i];
    Held& by = held[{change.kind, change.stage}];
    by.bytes += change.bytes;
    by.by_microbatch[change.microbatch] += change.bytes;
    peak.bytes += change.bytes;
    peak.time = change.time;
  }
  for (const auto& [who, by] : held) {
    if (by.bytes == 0) continue;
    MemoryHolder holder{.kind = who.first, .stage = who.second, .bytes = by.bytes};
    for (const auto& [microbatch, bytes] : by.by_microbatch) {
      if (bytes != 0 && microbatch != kNoMicrobatch) holder.microbatches.push_back(microbatch);
    }
    peak.holders.push_back(std::move(holder));
  }
  std::ranges::stable_sort(peak.holders, std::ranges::greater{}, &MemoryHolder::bytes);
  return peak;
}

}  // namespace

std::vector<MemoryPeak> memory_peaks(const Schedule& lowered, const CostTable& costs, const Timeline& predicted) {
  if (predicted.ranks.empty()) return {};
  const auto changes = memory_changes(lowered, ActionTable(lowered), costs, times_of(predicted));
  std::vector<MemoryPeak> peaks;
  for (std::size_t r = 0; r < changes.size(); ++r) {
    peaks.push_back(peak_of(changes[r]));
    peaks.back().running = running_at(predicted.ranks[r], peaks.back().time);
  }
  return peaks;
}

BytesByKind bytes_by_kind(const MemoryPeak& peak) {
  BytesByKind bytes{};
  for (const MemoryHolder& holder : peak.holders) bytes[static_cast<std::size_t>(holder.kind)] += holder.bytes;
  return bytes;
}

}}  // namespace plumb::simulator
