#include "traces/idle_causes.h"

#include <algorithm>
#include <string_view>

#include "schedules/dependencies/action_table.h"
#include "traces/chain.h"
#include "traces/statistics.h"

namespace plumb { inline namespace traces {
namespace {

constexpr std::array<std::string_view, kIdleCauseCount> kIdleCauseNames = {
    "warm-up", "drain",    "activation", "gradient",  "memory limit", "imbalance",
    "link",    "transfer", "parameters", "reduction", "move",         "overhead"};

SimTime& of(IdleByCause& idle, IdleCause cause) {
  return idle[static_cast<std::size_t>(cause)];
}

/// The rest of a gap, which is put down cause by cause from its start on.
class Gap {
 public:
  Gap(SimTime start, SimTime end, IdleByCause& idle) : now_(start), end_(end), idle_(idle) {}

  void until(SimTime time, IdleCause cause) {
    const SimTime to = std::clamp(time, now_, end_);
    of(idle_, cause) += to - now_;
    now_ = to;
  }

 private:
  SimTime now_;
  SimTime end_;
  IdleByCause& idle_;
};

/// Finds when the inputs of forwards are there.
class ForwardInputs {
 public:
  ForwardInputs(const Timeline& timeline, const Schedule& schedule, const ActionTable& table)
      : timeline_(timeline),
        table_(table),
        ids_(action_ids(schedule)),
        predecessor_(stage_neighbors(schedule).predecessor) {}

  /// Returns that moment, or SimTime::max() if no action makes the input.
  SimTime ready(const Action& forward) const {
    const StagePlace& place = timeline_.stages[forward.stage];
    if (place.model_part == 0) return SimTime::min();
    const int before = predecessor_[forward.stage];
    if (before < 0) return SimTime::max();
    const Op maker = timeline_.stages[before].rank == place.rank ? Op::kForward : Op::kSendActivation;
    const std::int32_t id = table_.find(maker, before, forward.microbatch, forward.part);
    if (id == ActionTable::kNone) return SimTime::max();
    const ActionPlace made = place_of(ids_, id);
    return timeline_.ranks[made.rank].spans[made.position].end;
  }

 private:
  const Timeline& timeline_;
  const ActionTable& table_;
  ActionIds ids_;
  std::vector<int> predecessor_;  ///< [stage] or -1
};

class Collector {
 public:
  Collector(const Timeline& timeline, const Schedule& schedule, const ActionTable& table)
      : timeline_(timeline), awaited_(last_awaited(timeline, schedule, table)), forwards_(timeline, schedule, table) {}

  /// Puts the gap in front of a rank's compute action down to its causes. `next_forward` is the first forward that is
  /// listed behind it, or null.
  void explain(Gap& gap, std::size_t rank, std::size_t span, const Action* next_forward) const {
    const Span& action = timeline_.ranks[rank].spans[span];
    const ChainLink awaited = awaited_[rank][span];
    if (awaited.rank >= 0) {
      const Span& input = at(awaited);
      switch (input.action.op) {
        case Op::kSendActivation:
        case Op::kSendGradient: {
          const ChainLink maker = awaited_[awaited.rank][awaited.span];
          if (maker.rank >= 0) {
            const SimTime made = at(maker).end;
            if (input.action.op == Op::kSendActivation) {
              gap.until(made, IdleCause::kActivation);
            } else {
              const SimTime ready = next_forward == nullptr ? SimTime::max() : forwards_.ready(*next_forward);
              gap.until(std::min(made, ready), IdleCause::kGradient);
              gap.until(made, IdleCause::kMemoryLimit);
            }
          }
          gap.until(input.start, IdleCause::kLink);
          gap.until(input.end, IdleCause::kTransfer);
          break;
        }
        case Op::kForward:  // of a shard, or of what stands before shards: it hands over without a message
          gap.until(input.end, IdleCause::kActivation);
          break;
        case Op::kBackward:
        case Op::kInputGrad:
          gap.until(input.end, IdleCause::kGradient);
          break;
        case Op::kUnshard:
        case Op::kSendWeights:
          gap.until(input.end, IdleCause::kParameters);
          break;
        case Op::kReduceGrad:
        case Op::kSendWeightGrad:
          gap.until(input.end, IdleCause::kReduction);
          break;
        case Op::kReload:
        case Op::kLoad:
          gap.until(input.end, IdleCause::kMove);
          break;
        default:
          break;
      }
    }
    gap.until(action.start, IdleCause::kOverhead);
  }

 private:
  const Span& at(const ChainLink& link) const { return timeline_.ranks[link.rank].spans[link.span]; }

  const Timeline& timeline_;
  std::vector<std::vector<ChainLink>> awaited_;
  ForwardInputs forwards_;
};

/// Moves the time that a rank with `less_work` than the busiest waits in any order from waiting for others to
/// imbalance.
void take_imbalance(IdleByCause& idle, SimTime less_work) {
  for (const IdleCause waiting : {IdleCause::kActivation, IdleCause::kGradient, IdleCause::kMemoryLimit}) {
    const SimTime taken = std::min(of(idle, waiting), less_work);
    of(idle, waiting) -= taken;
    of(idle, IdleCause::kImbalance) += taken;
    less_work -= taken;
  }
}

}  // namespace

std::string_view idle_cause_name(IdleCause cause) {
  return kIdleCauseNames[static_cast<std::size_t>(cause)];
}

std::vector<IdleByCause> idle_by_cause(const Timeline& timeline) {
  return idle_by_cause(timeline, schedule_of(timeline));
}

std::vector<IdleByCause> idle_by_cause(const Timeline& timeline, const Schedule& schedule) {
  const Statistics statistics = statistics_of(timeline);
  SimTime start = SimTime::max();
  for (const RankTimeline& rank : timeline.ranks) {
    for (const Span& span : rank.spans) start = std::min(start, span.start);
  }
  const SimTime end = start + statistics.makespan;
  SimTime most_busy{0};
  for (const RankStatistics& rank : statistics.ranks) most_busy = std::max(most_busy, rank.busy);

  const ActionTable table(schedule);
  const Collector collector(timeline, schedule, table);
  std::vector<IdleByCause> ranks(timeline.ranks.size(), IdleByCause{});
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    SimTime now = start;  // the end of the rank's computing so far
    bool first = true;
    const std::vector<Span>& spans = timeline.ranks[r].spans;
    std::size_t next_forward = 0;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const Span& span = spans[i];
      if (span.stream != Stream::kCompute) continue;
      next_forward = std::max(next_forward, i + 1);
      while (next_forward < spans.size() && spans[next_forward].action.op != Op::kForward) ++next_forward;
      Gap gap(now, std::max(now, span.start), ranks[r]);
      if (first) gap.until(span.start, IdleCause::kWarmUp);
      collector.explain(gap, r, i, next_forward < spans.size() ? &spans[next_forward].action : nullptr);
      now = std::max(now, span.end);
      first = false;
    }
    if (statistics.makespan > SimTime{0}) Gap(now, end, ranks[r]).until(end, IdleCause::kDrain);
    take_imbalance(ranks[r], most_busy - statistics.ranks[r].busy);
  }
  return ranks;
}

}}  // namespace plumb::traces
