#include "tests/simulator/longest_path.h"

#include <algorithm>
#include <iterator>

#include <boost/graph/topological_sort.hpp>
#include <boost/range/iterator_range.hpp>

#include "schedules/dependencies/action_graph.h"
#include "schedules/dependencies/joint_reductions.h"
#include "simulator/compile/deadlock.h"

namespace plumb::test {
namespace {

/// Returns [action id] the time for which it holds its rank or channel. A pair's first action holds it for both, the
/// first of a collective of copies for the longest of them.
std::vector<SimTime> occupied_times(const Schedule& schedule, const ActionCosts& costs, const JointReductions& joint) {
  std::vector<SimTime> occupied;
  for (const auto& actions : schedule.ranks) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      occupied.push_back(action.overlaps_next ? pair_duration(costs, action, actions[i + 1])
                         : is_send(action.op) ? transfer_of(costs, action).occupied
                                              : duration_of(costs, action));
    }
  }
  for (const std::vector<std::int32_t>& members : joint.members) {
    for (const std::int32_t member : members)
      occupied[members.front()] = std::max(occupied[members.front()], occupied[member]);
  }
  return occupied;
}

std::vector<const Action*> actions_by_id(const Schedule& schedule) {
  std::vector<const Action*> by_id;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) by_id.push_back(&action);
  }
  return by_id;
}

/// Returns [action id] how much later than the end of its hold the action has delivered.
std::vector<SimTime> latencies(const Schedule& schedule, const ActionCosts& costs) {
  std::vector<SimTime> latency;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      latency.push_back(is_send(action.op)         ? transfer_of(costs, action).latency
                        : sends_weights(action.op) ? weight_latency(costs, action)
                                                   : SimTime{0});
    }
  }
  return latency;
}

}  // namespace

std::vector<SimTime> longest_path_starts(const Schedule& schedule, const ActionCosts& costs, Sends sends) {
  const ActionGraph graph = action_graph(schedule, sends);
  if (!find_cycle(graph).empty()) throw deadlock_error(schedule, sends);
  std::vector<ActionGraph::vertex_descriptor> order;
  order.reserve(num_vertices(graph));
  boost::topological_sort(graph, std::back_inserter(order));

  const JointReductions joint = joint_reductions(schedule);
  const std::vector<SimTime> occupied = occupied_times(schedule, costs, joint);
  const std::vector<SimTime> latency = latencies(schedule, costs);
  const std::vector<const Action*> action_of = actions_by_id(schedule);
  std::vector<SimTime> start(num_vertices(graph), SimTime{0});
  for (auto from = order.rbegin(); from != order.rend(); ++from) {
    for (const auto edge : boost::make_iterator_range(out_edges(*from, graph))) {
      SimTime bound = start[*from];
      const Wait wait = graph[edge].wait;
      if (wait == Wait::kInside) bound += bucket_offset(costs, *action_of[*from], *action_of[target(edge, graph)]);
      if (wait == Wait::kOccupied || wait == Wait::kDelivered) bound += occupied[*from];
      if (wait == Wait::kDelivered) bound += latency[*from];
      SimTime& later = start[target(edge, graph)];
      later = std::max(later, bound);
    }
  }
  // The other copies of a collective and the second action of a pair have no edges of their own.
  for (const std::vector<std::int32_t>& members : joint.members) {
    for (const std::int32_t member : members) start[member] = start[members.front()];
  }
  std::size_t id = 0;
  for (const auto& actions : schedule.ranks) {
    for (std::size_t i = 0; i < actions.size(); ++i, ++id) {
      if (i > 0 && actions[i - 1].overlaps_next) start[id] = start[id - 1];
    }
  }
  return start;
}

}  // namespace plumb::test
