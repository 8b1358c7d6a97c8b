#include "traces/chain.h"

#include <algorithm>
#include <span>

#include "schedules/dependencies/dependencies.h"
#include "schedules/dependencies/joint_reductions.h"

namespace plumb { inline namespace traces {
namespace {

const Span& span_at(const Timeline& timeline, const ActionPlace& place) {
  return timeline.ranks[place.rank].spans[place.position];
}

/// Returns place_of(ids, id), found at once where the action is one of `rank`.
ActionPlace place_near(const ActionIds& ids, int rank, std::int32_t id) {
  const std::int32_t first = ids.first_id[rank];
  return id >= first && id < ids.first_id[rank + 1] ? ActionPlace{rank, id - first} : place_of(ids, id);
}

/// Returns when the event that a span waits for had happened. A moment inside an action left no trace but that the
/// waiting span began.
SimTime happened(const Span& awaited, const Span& waiting, bool inside) {
  return inside ? std::min(awaited.end, waiting.start) : awaited.end;
}

/// Calls visit(waiting, awaited, time) with the places of each span and of each that it waits for, and with when that
/// had happened.
template <typename Visit>
void for_each_awaited(const Timeline& timeline, const Schedule& schedule, const ActionTable& table, Visit visit) {
  const ActionIds ids = action_ids(schedule);
  const JointReductions joint = joint_reductions(schedule);
  for_each_rank_dependencies(
      schedule, table, Sends::kBuffered, [&](int rank, std::span<const Dependency> dependencies) {
        for (const Dependency& dependency : dependencies) {
          const ActionPlace first = place_near(ids, rank, dependency.to);
          const Action& action = span_at(timeline, first).action;
          const bool sends = is_send(action.op) || sends_weights(action.op);
          if (dependency.reason == Reason::kChannel && sends) continue;
          const ActionPlace awaited = place_near(ids, rank, dependency.from);
          const auto wait = [&](const ActionPlace& waiting) {
            visit(waiting, awaited,
                  happened(span_at(timeline, awaited), span_at(timeline, waiting), dependency.wait == Wait::kInside));
          };
          wait(first);
          // The second of an overlapped pair waits for what the first waits for, and so do copies that reduce together.
          const bool is_pair = action.overlaps_next && dependency.to + 1 < ids.first_id[first.rank + 1];
          if (is_pair) wait({first.rank, first.position + 1});
          const std::int32_t collective = joint.collective_of.empty() ? -1 : joint.collective_of[dependency.to];
          if (collective < 0) continue;
          for (const std::int32_t member : joint.members[collective]) {
            if (member != dependency.to) wait(place_of(ids, member));
          }
        }
      });
}

/// [rank][span] that value.
template <typename T>
std::vector<std::vector<T>> for_each_span(const Timeline& timeline, const T& value) {
  std::vector<std::vector<T>> values;
  for (const RankTimeline& rank : timeline.ranks) values.emplace_back(rank.spans.size(), value);
  return values;
}

}  // namespace

std::vector<std::vector<SimTime>> ready_times(const Timeline& timeline) {
  const Schedule schedule = schedule_of(timeline);
  std::vector<std::vector<SimTime>> ready = for_each_span(timeline, SimTime::min());
  for_each_awaited(timeline, schedule, ActionTable(schedule),
                   [&ready](const ActionPlace& waiting, const ActionPlace&, SimTime time) {
                     SimTime& latest = ready[waiting.rank][waiting.position];
                     latest = std::max(latest, time);
                   });
  return ready;
}

std::vector<std::vector<ChainLink>> last_awaited(const Timeline& timeline, const Schedule& schedule,
                                                 const ActionTable& table) {
  std::vector<std::vector<ChainLink>> links = for_each_span(timeline, ChainLink{.rank = -1});
  std::vector<std::vector<SimTime>> ready = for_each_span(timeline, SimTime::min());
  for_each_awaited(timeline, schedule, table,
                   [&](const ActionPlace& waiting, const ActionPlace& awaited, SimTime time) {
                     SimTime& latest = ready[waiting.rank][waiting.position];
                     if (time <= latest) return;
                     latest = time;
                     links[waiting.rank][waiting.position] = {.rank = awaited.rank, .span = awaited.position};
                   });
  return links;
}

std::vector<ChainLink> latest_chain(const Timeline& timeline) {
  const Schedule schedule = schedule_of(timeline);
  const std::vector<std::vector<ChainLink>> awaited = last_awaited(timeline, schedule, ActionTable(schedule));
  ChainLink last{.rank = -1};
  SimTime end = SimTime::min();
  for (int r = 0; r < static_cast<int>(timeline.ranks.size()); ++r) {
    const std::vector<Span>& spans = timeline.ranks[r].spans;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(spans.size()); ++i) {
      if (last.rank >= 0 && spans[i].end <= end) continue;
      last = {.rank = r, .span = i};
      end = spans[i].end;
    }
  }
  std::vector<ChainLink> chain;
  std::vector<std::vector<bool>> visited;  // a file may hold what never ran
  for (const RankTimeline& rank : timeline.ranks) visited.emplace_back(rank.spans.size(), false);
  while (last.rank >= 0 && !visited[last.rank][last.span]) {
    visited[last.rank][last.span] = true;
    chain.push_back(last);
    last = awaited[last.rank][last.span];
  }
  std::ranges::reverse(chain);
  return chain;
}

}}  // namespace plumb::traces
