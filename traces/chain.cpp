#include "traces/chain.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "schedules/dependencies/dependencies.h"
#include "schedules/dependencies/joint_reductions.h"

namespace plumb { inline namespace traces {
namespace {

/// An action that another waits for.
struct Awaited {
  std::int32_t id = 0;
  bool inside = false;  ///< true if a moment of it is waited for, not its end
};

/// The actions that each action waits for, by id.
class Predecessors {
 public:
  explicit Predecessors(const Schedule& schedule) : Predecessors(schedule, ActionTable(schedule)) {}
  Predecessors(const Schedule& schedule, const ActionTable& table) : ids_(action_ids(schedule)) {
    std::vector<Dependency> kept = dependencies(schedule, table, Sends::kBuffered);
    std::erase_if(kept, [&](const Dependency& dependency) {
      return dependency.reason == Reason::kChannel && is_send(action_of(schedule, dependency.to).op);
    });
    first_.assign(static_cast<std::size_t>(ids_.first_id.back()) + 1, 0);
    for (const Dependency& dependency : kept) ++first_[dependency.to + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    from_.resize(kept.size());
    std::vector<std::int32_t> next(first_.begin(), first_.end() - 1);
    for (const Dependency& dependency : kept)
      from_[next[dependency.to]++] = {.id = dependency.from, .inside = dependency.wait == Wait::kInside};
    // The second of an overlapped pair waits for the spans that the first waits for, and so do copies that reduce
    // together.
    std::int32_t id = 0;
    for (const auto& actions : schedule.ranks) {
      for (std::size_t i = 0; i < actions.size(); ++i, ++id) {
        stands_for_.push_back(i > 0 && actions[i - 1].overlaps_next ? id - 1 : id);
      }
    }
    for (const std::vector<std::int32_t>& members : joint_reductions(schedule).members) {
      for (const std::int32_t member : members) stands_for_[member] = members.front();
    }
  }

  std::span<const Awaited> of(std::int32_t id) const {
    const std::int32_t first = stands_for_[id];
    return std::span(from_).subspan(first_[first], first_[first + 1] - first_[first]);
  }

  const ActionIds& ids() const { return ids_; }

 private:
  const Action& action_of(const Schedule& schedule, std::int32_t id) const {
    const ActionPlace place = place_of(ids_, id);
    return schedule.ranks[place.rank][place.position];
  }

  ActionIds ids_;
  std::vector<std::int32_t> first_;  ///< [id + 1] first of its entries in from_
  std::vector<Awaited> from_;
  std::vector<std::int32_t> stands_for_;  ///< [id] the action whose entries it shares
};

const Span& span_at(const Timeline& timeline, const ActionPlace& place) {
  return timeline.ranks[place.rank].spans[place.position];
}

/// Returns when the event that a span waits for had happened. A moment inside an action left no trace but that the
/// waiting span began.
SimTime happened(const Span& awaited, const Span& waiting, bool inside) {
  return inside ? std::min(awaited.end, waiting.start) : awaited.end;
}

}  // namespace

std::vector<std::vector<SimTime>> ready_times(const Timeline& timeline) {
  const Predecessors predecessors(schedule_of(timeline));
  std::vector<std::vector<SimTime>> ready;
  std::int32_t id = 0;
  for (const RankTimeline& rank : timeline.ranks) {
    std::vector<SimTime>& times = ready.emplace_back(rank.spans.size(), SimTime::min());
    for (std::size_t i = 0; i < times.size(); ++i, ++id) {
      for (const Awaited& before : predecessors.of(id)) {
        const Span& awaited = span_at(timeline, place_of(predecessors.ids(), before.id));
        times[i] = std::max(times[i], happened(awaited, rank.spans[i], before.inside));
      }
    }
  }
  return ready;
}

std::vector<std::vector<ChainLink>> last_awaited(const Timeline& timeline, const Schedule& schedule,
                                                 const ActionTable& table) {
  const Predecessors predecessors(schedule, table);
  std::vector<std::vector<ChainLink>> awaited;
  std::int32_t id = 0;
  for (const RankTimeline& rank : timeline.ranks) {
    std::vector<ChainLink>& links = awaited.emplace_back(rank.spans.size(), ChainLink{.rank = -1});
    for (std::size_t i = 0; i < links.size(); ++i, ++id) {
      SimTime latest = SimTime::min();
      for (const Awaited& before : predecessors.of(id)) {
        const ActionPlace place = place_of(predecessors.ids(), before.id);
        const SimTime time = happened(span_at(timeline, place), rank.spans[i], before.inside);
        if (time <= latest) continue;
        latest = time;
        links[i] = {.rank = place.rank, .span = place.position};
      }
    }
  }
  return awaited;
}

std::vector<ChainLink> latest_chain(const Timeline& timeline) {
  const Predecessors predecessors(schedule_of(timeline));
  const ActionIds& ids = predecessors.ids();
  const auto span_of = [&](std::int32_t id) -> const Span& { return span_at(timeline, place_of(ids, id)); };
  const auto end_of = [&](std::int32_t id) { return span_of(id).end; };
  const std::int32_t actions = ids.first_id.back();

  std::int32_t last = -1;
  for (std::int32_t id = 0; id < actions; ++id) {
    if (last < 0 || end_of(id) > end_of(last)) last = id;
  }
  std::vector<ChainLink> chain;
  std::vector<bool> visited(static_cast<std::size_t>(actions), false);  // a file may hold an order that never ran
  while (last >= 0 && !visited[last]) {
    visited[last] = true;
    const ActionPlace place = place_of(ids, last);
    chain.push_back({.rank = place.rank, .span = place.position});
    std::int32_t before = -1;
    SimTime latest{0};
    for (const Awaited& awaited : predecessors.of(last)) {
      const SimTime time = happened(span_of(awaited.id), span_of(last), awaited.inside);
      if (before >= 0 && time <= latest) continue;
      before = awaited.id;
      latest = time;
    }
    last = before;
  }
  std::ranges::reverse(chain);
  return chain;
}

}}  // namespace plumb::traces
