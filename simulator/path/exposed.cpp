#include "simulator/path/exposed.h"

#include <algorithm>
#include <span>

#include "schedules/phases.h"
#include "traces/idle_causes.h"

namespace plumb { inline namespace simulator {
namespace {

/// The durations of the segments of an action, or of an overlapped pair, that decide how long it lasts.
struct SegmentTimes {
  SimTime computing{0};
  std::array<SimTime, kGroupCount> collectives{};
  SimTime sum{0};
};

SegmentTimes segment_times(const CostTable& costs, std::span<const Action> actions) {
  SegmentTimes parts;
  for (const CostPhase& phase : phases_of(costs, actions)) {
    SimTime blocking{0}, beside_sum{0};
    std::array<SimTime, kGroupCount> beside{};
    for (const LaneSegment& of : phase.blocking) {
      const Segment& segment = *of.segment;
      const SimTime time = to_sim_time(segment.seconds);
      const bool computes = segment.kind == Segment::Kind::kCompute;
      (computes ? parts.computing : parts.collectives[static_cast<std::size_t>(segment.group)]) += time;
      blocking += time;
    }
    for (const LaneSegment& of : phase.beside) {
      const SimTime time = to_sim_time(of.segment->seconds);
      beside[static_cast<std::size_t>(of.segment->group)] += time;
      beside_sum += time;
    }
    parts.sum += std::max(blocking, beside_sum);
    // The time by which the collectives outlast the rest belongs to those that ran last.
    SimTime outlasting = std::max(SimTime{0}, beside_sum - blocking);
    for (std::size_t group = kGroupCount; group-- > 0;) {
      const SimTime shown = std::min(outlasting, beside[group]);
      parts.collectives[group] += shown;
      outlasting -= shown;
    }
  }
  return parts;
}

/// Divides `time` in proportion to the parts.
void add_divided(ExposedTime& exposed, const SegmentTimes& parts, SimTime time) {
  SimTime rest = time;
  for (std::size_t group = 0; group < kGroupCount; ++group) {
    SimTime share = parts.collectives[group];
    if (time != parts.sum && parts.sum > SimTime{0}) {
      const double of = static_cast<double>(share.count()) / static_cast<double>(parts.sum.count());
      share = SimTime{static_cast<std::int64_t>(of * static_cast<double>(time.count()))};
    }
    share = std::min(share, rest);
    exposed.collectives[group] += share;
    rest -= share;
  }
  exposed.computing += rest;
}

/// Returns the field of an operation that is no compute action.
SimTime& cause_of(ExposedTime& exposed, Op op) {
  if (op == Op::kUnshard || op == Op::kReshard || op == Op::kSendWeights) return exposed.gathers;
  if (op == Op::kReduceGrad || op == Op::kSendWeightGrad) return exposed.reductions;
  return op == Op::kOffload || op == Op::kReload || op == Op::kEvict || op == Op::kLoad ? exposed.moves
                                                                                        : exposed.messages;
}

/// Ahead of its first compute action a rank waits for the others, and for its own UNSHARD once its activation is there.
void add_warm_up(ExposedTime& exposed, const RankTimeline& rank, SimTime warm_up) {
  const auto first = std::ranges::find(rank.spans, Stream::kCompute, &Span::stream);
  SimTime gathered{0};
  SimTime ready{0};  // apart from the gathering
  for (auto span = rank.spans.begin(); span != first; ++span) {
    if (first == rank.spans.end() || span->action.stage != first->action.stage) continue;
    if (span->action.op == Op::kUnshard) gathered = span->end;
    if (span->action.op == Op::kUnshard && span->action.part == 0) ready = std::max(ready, span->start);
    if (span->action.op == Op::kRecvActivation && span->action.microbatch == first->action.microbatch)
      ready = std::max(ready, span->end);
  }
  const SimTime gathering = std::clamp(gathered - ready, SimTime{0}, warm_up);
  exposed.gathers += gathering;
  exposed.waiting += warm_up - gathering;
}

/// Behind its last compute action a rank waits for the others, and for its own collectives and moves.
void add_drain(ExposedTime& exposed, const RankTimeline& rank, SimTime drain) {
  SimTime last_end = SimTime::min();
  std::vector<const Span*> beside;
  for (const Span& span : rank.spans) {
    if (span.stream == Stream::kCompute) last_end = std::max(last_end, span.end);
    if (span.stream == Stream::kCollective) beside.push_back(&span);
  }
  std::ranges::stable_sort(beside, {}, [](const Span* span) { return span->start; });
  SimTime now = last_end;
  for (const Span* span : beside) {
    const SimTime from = std::max(now, span->start);
    if (span->end <= from) continue;
    cause_of(exposed, span->action.op) += span->end - from;
    drain -= span->end - from;
    now = span->end;
  }
  exposed.waiting += drain;
}

}  // namespace

SimTime total(const ExposedTime& time) {
  SimTime sum = time.computing + time.messages + time.gathers + time.reductions + time.moves + time.waiting;
  for (const SimTime group : time.collectives) sum += group;
  return sum;
}

std::vector<ExposedTime> exposed_by_rank(const CostTable& costs, const Timeline& predicted,
                                         const std::vector<IdleByCause>& idle) {
  std::vector<ExposedTime> ranks(predicted.ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::vector<Span>& spans = predicted.ranks[r].spans;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (spans[i].stream != Stream::kCompute) continue;
      const SimTime time = spans[i].end - spans[i].start;
      std::vector<Action> actions{spans[i].action};
      if (spans[i].action.overlaps_next) actions.push_back(spans[++i].action);
      add_divided(ranks[r], segment_times(costs, actions), time);
    }
    for (int cause = 0; cause < kIdleCauseCount; ++cause) {
      const SimTime time = idle[r][static_cast<std::size_t>(cause)];
      switch (static_cast<IdleCause>(cause)) {
        case IdleCause::kLink:
        case IdleCause::kTransfer:
          ranks[r].messages += time;
          break;
        case IdleCause::kParameters:
          ranks[r].gathers += time;
          break;
        case IdleCause::kReduction:
          ranks[r].reductions += time;
          break;
        case IdleCause::kMove:
          ranks[r].moves += time;
          break;
        case IdleCause::kWarmUp:
          add_warm_up(ranks[r], predicted.ranks[r], time);
          break;
        case IdleCause::kDrain:
          add_drain(ranks[r], predicted.ranks[r], time);
          break;
        default:
          ranks[r].waiting += time;
      }
    }
  }
  return ranks;
}

std::vector<ExposedTime> exposed_on_path(const Schedule& lowered, const CostTable& costs,
                                         const std::vector<CriticalStep>& path) {
  std::vector<ExposedTime> ranks(lowered.ranks.size());
  const std::vector<SimTime> added = contributions(path);
  for (std::size_t i = 0; i < path.size(); ++i) {
    const CriticalStep& step = path[i];
    const SimTime time = added[i];
    ExposedTime& exposed = ranks[step.rank];
    if (!is_compute(step.action.op)) {
      cause_of(exposed, step.action.op) += time;
      continue;
    }
    add_divided(exposed, segment_times(costs, actions_of(lowered, step)), time);
  }
  return ranks;
}

}}  // namespace plumb::simulator
