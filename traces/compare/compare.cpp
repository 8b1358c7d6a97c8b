#include "traces/compare/compare.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "schedules/error.h"
#include "traces/chain.h"
#include "traces/compare/matching.h"
#include "traces/idle_causes.h"
#include "traces/statistics.h"

namespace plumb { inline namespace traces {
namespace {

using Matches = std::vector<std::vector<std::int32_t>>;  // [rank][predicted span] measured span, or -1

SimTime duration(const Span& span) {
  return span.end - span.start;
}

/// Returns the median; of an even number of times, the smaller of the two in the middle.
SimTime lower_median(std::vector<SimTime> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

std::vector<SimTime> overhead_by_rank(const Timeline& timeline) {
  std::vector<SimTime> times;
  for (const IdleByCause& rank : idle_by_cause(timeline))
    times.push_back(rank[static_cast<std::size_t>(IdleCause::kOverhead)]);
  return times;
}

std::size_t median_step(const std::vector<Timeline>& steps) {
  std::vector<std::size_t> order(steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return makespan_of(steps[i]); });
  return order[(order.size() - 1) / 2];
}

std::vector<OpComparison> compare_ops(const Timeline& predicted, const std::vector<Timeline>& steps,
                                      const std::vector<Matches>& matches) {
  std::map<std::pair<Op, int>, OpComparison> by_op;
  std::map<std::pair<Op, int>, std::vector<SimTime>> by_step;  // sums over the step's actions
  for (std::size_t r = 0; r < predicted.ranks.size(); ++r) {
    for (std::size_t i = 0; i < predicted.ranks[r].spans.size(); ++i) {
      const Span& span = predicted.ranks[r].spans[i];
      if (!is_compute(span.action.op)) continue;
      std::vector<SimTime> measured;
      for (std::size_t step = 0; step < steps.size(); ++step) {
        measured.push_back(duration(steps[step].ranks[r].spans[matches[step][r][i]]));
      }
      std::vector<SimTime>& sums = by_step[{span.action.op, span.action.stage}];
      sums.resize(steps.size());
      for (std::size_t step = 0; step < steps.size(); ++step) sums[step] = checked_sum(sums[step], measured[step]);
      OpComparison& op = by_op[{span.action.op, span.action.stage}];
      op.op = span.action.op;
      op.stage = span.action.stage;
      ++op.count;
      op.mean.predicted = checked_sum(op.mean.predicted, duration(span));
      op.mean.measured = checked_sum(op.mean.measured, lower_median(std::move(measured)));
    }
  }
  std::vector<OpComparison> ops;
  for (auto& [key, op] : by_op) {
    op.mean.predicted /= op.count;
    op.mean.measured /= op.count;
    std::vector<SimTime>& means = by_step[key];
    for (SimTime& mean : means) mean /= op.count;
    op.interval = median_interval(std::move(means));
    ops.push_back(op);
  }
  return ops;
}

/// Adds up the time that the chain spends on each cause.
class CauseCollector {
 public:
  CauseCollector(const Timeline& predicted, const Timeline& measured, const Matches& matches)
      : predicted_(predicted), measured_(measured), matches_(matches) {}

  std::vector<ErrorCause> collect() {
    const std::vector<ChainLink> chain = latest_chain(predicted_);
    std::vector<ChainLink> measured_chain;
    for (const ChainLink& link : chain) {
      if (const std::int32_t match = matches_[link.rank][link.span]; match >= 0)
        measured_chain.push_back({link.rank, match});
    }
    walk(predicted_, chain, &ComparedTime::predicted);
    walk(measured_, measured_chain, &ComparedTime::measured);

    std::vector<ErrorCause> causes;
    for (const auto& [key, cause] : causes_) causes.push_back(cause);
    std::ranges::stable_sort(causes, std::ranges::greater{}, [](const ErrorCause& cause) {
      return std::chrono::abs(cause.time.measured - cause.time.predicted);
    });
    return causes;
  }

 private:
  /// Puts every moment, from the timeline's first start to its last end, down to one cause.
  void walk(const Timeline& timeline, const std::vector<ChainLink>& chain, SimTime ComparedTime::*side) {
    const std::vector<std::vector<SimTime>> ready = ready_times(timeline);
    SimTime first = SimTime::max();
    for (const RankTimeline& rank : timeline.ranks) {
      for (const Span& span : rank.spans) first = std::min(first, span.start);
    }
    SimTime at = first;
    for (const ChainLink& link : chain) {
      const Span& span = timeline.ranks[link.rank].spans[link.span];
      const SimTime gap = span.start - at;
      // Compute starts once it is ready; a transfer or a collective may have to wait for its channel.
      const bool computes = is_compute(span.action.op);
      const SimTime late = std::max(at, std::min(ready[link.rank][link.span], span.start)) - at;
      const SimTime waiting = computes ? late : gap;
      add({.kind = ErrorCause::Kind::kWaiting}, waiting, side);
      add({.kind = ErrorCause::Kind::kOverhead}, gap - waiting, side);
      add(cause_of(span.action), duration(span), side);
      at = span.end;
    }
    add({.kind = ErrorCause::Kind::kWaiting}, first + makespan_of(timeline) - at, side);
  }

  static ErrorCause cause_of(const Action& action) {
    if (is_compute(action.op)) return {.kind = ErrorCause::Kind::kOperation, .op = action.op, .stage = action.stage};
    if (is_message(action.op) || is_weight_message(action.op))
      return {.kind = ErrorCause::Kind::kTransfer, .op = action.op};
    return {.kind = ErrorCause::Kind::kCollective, .op = action.op};
  }

  void add(const ErrorCause& cause, SimTime time, SimTime ComparedTime::*side) {
    ErrorCause& sum = causes_.try_emplace({cause.kind, cause.op, cause.stage}, cause).first->second;
    sum.time.*side += time;
  }

  const Timeline& predicted_;
  const Timeline& measured_;
  const Matches& matches_;
  std::map<std::tuple<ErrorCause::Kind, Op, int>, ErrorCause> causes_;
};

}  // namespace

double error_ratio(const ComparedTime& time) {
  if (time.predicted == time.measured) return 0;
  return to_seconds(time.predicted) / to_seconds(time.measured) - 1;
}

Comparison compare(const Timeline& predicted, const std::vector<Timeline>& measured_steps) {
  if (measured_steps.empty()) throw InputError("there is no measured step to compare with: give at least one");
  std::vector<Matches> matches;
  Comparison comparison{.steps = static_cast<int>(measured_steps.size())};
  comparison.fastest_step = SimTime::max();
  std::vector<SimTime> makespans;
  for (const Timeline& step : measured_steps) {
    makespans.push_back(makespan_of(step));
    matches.push_back(match_spans(predicted, step));
    comparison.fastest_step = std::min(comparison.fastest_step, makespan_of(step));
    comparison.slowest_step = std::max(comparison.slowest_step, makespan_of(step));
  }
  comparison.step_interval = median_interval(makespans);
  const std::size_t median = median_step(measured_steps);
  const Statistics expected = statistics_of(predicted);
  const Statistics found = statistics_of(measured_steps[median]);
  comparison.step = {expected.makespan, found.makespan};
  comparison.predicted_bubble_ratio = expected.bubble_ratio;
  comparison.measured_bubble_ratio = found.bubble_ratio;
  comparison.predicted_span_bubble_ratio = expected.span_bubble_ratio;
  comparison.measured_span_bubble_ratio = found.span_bubble_ratio;
  const std::vector<SimTime> expected_overhead = overhead_by_rank(predicted);
  const std::vector<SimTime> found_overhead = overhead_by_rank(measured_steps[median]);
  for (std::size_t r = 0; r < expected.ranks.size(); ++r) {
    comparison.ranks.push_back({.busy = {expected.ranks[r].busy, found.ranks[r].busy},
                                .idle = {expected.ranks[r].idle, found.ranks[r].idle},
                                .overhead = {expected_overhead[r], found_overhead[r]},
                                .predicted_peak_bytes = expected.ranks[r].peak_memory_bytes,
                                .measured_peak_bytes = found.ranks[r].peak_memory_bytes});
  }
  comparison.ops = compare_ops(predicted, measured_steps, matches);
  comparison.causes = CauseCollector(predicted, measured_steps[median], matches[median]).collect();
  return comparison;
}

}}  // namespace plumb::traces
