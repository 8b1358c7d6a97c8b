#include "traces/statistics.h"

#include <algorithm>

namespace plumb { inline namespace traces {
namespace {

/// Adds up the compute spans of a rank; `busy` is the length of their union. They are in order of start unless a
/// measurement has disordered them.
RankStatistics rank_statistics(const RankTimeline& rank) {
  std::vector<std::pair<SimTime, SimTime>> compute;
  for (const Span& span : rank.spans) {
    if (is_compute(span.action.op)) compute.emplace_back(span.start, span.end);
  }
  if (!std::ranges::is_sorted(compute)) std::ranges::sort(compute);

  RankStatistics statistics;
  if (!compute.empty()) statistics.first_start = statistics.last_end = compute.front().first;
  for (const auto& [start, end] : compute) {
    const SimTime covered = std::max(start, statistics.last_end);
    if (end > covered) statistics.busy += end - covered;
    statistics.last_end = std::max(statistics.last_end, end);
  }
  for (const MemorySample& sample : rank.memory) {
    statistics.peak_memory_bytes = std::max(statistics.peak_memory_bytes, sample.bytes);
  }
  return statistics;
}

}  // namespace

SimTime makespan_of(const Timeline& timeline) {
  SimTime first = SimTime::max();
  SimTime last = SimTime::min();
  for (const RankTimeline& rank : timeline.ranks) {
    for (const Span& span : rank.spans) {
      first = std::min(first, span.start);
      last = std::max(last, span.end);
    }
  }
  return last < first ? SimTime{0} : last - first;
}

Bubbles bubbles_of(const std::vector<RankStatistics>& ranks, SimTime makespan) {
  double busy_sum = 0;
  SimTime largest_busy{0};
  SimTime largest_span{0};
  for (const RankStatistics& rank : ranks) {
    busy_sum += to_seconds(rank.busy).count();
    largest_busy = std::max(largest_busy, rank.busy);
    largest_span = std::max(largest_span, rank.last_end - rank.first_start);
  }
  Bubbles bubbles;
  if (makespan > SimTime{0}) {
    bubbles.bubble_ratio =
        std::max(0.0, 1 - busy_sum / (static_cast<double>(ranks.size()) * to_seconds(makespan).count()));
  }
  if (largest_span > SimTime{0}) {
    bubbles.span_bubble_ratio = std::max(0.0, 1 - to_seconds(largest_busy).count() / to_seconds(largest_span).count());
  }
  return bubbles;
}

Statistics statistics_of(const Timeline& timeline) {
  Statistics statistics{.makespan = makespan_of(timeline)};
  for (const RankTimeline& rank : timeline.ranks) {
    statistics.ranks.push_back(rank_statistics(rank));
    statistics.ranks.back().idle = statistics.makespan - statistics.ranks.back().busy;
    for (const Span& span : rank.spans) {
      OpTotal& op = statistics.ops[static_cast<std::size_t>(span.action.op)];
      ++op.count;
      op.total += to_seconds(span.end - span.start);
    }
  }
  const Bubbles bubbles = bubbles_of(statistics.ranks, statistics.makespan);
  statistics.bubble_ratio = bubbles.bubble_ratio;
  statistics.span_bubble_ratio = bubbles.span_bubble_ratio;
  return statistics;
}

}}  // namespace plumb::traces
