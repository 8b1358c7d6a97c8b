#include "planner/partition/pipedream_states.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/unordered_map.hpp>

#include "schedules/error.h"
#include "schedules/limits.h"

namespace plumb { inline namespace planner {
namespace {

std::vector<int> readers_of(const ProfiledGraph& graph, int node) {
  std::vector<int> readers;
  for (const auto edge : boost::make_iterator_range(out_edges(static_cast<std::size_t>(node), graph)))
    readers.push_back(static_cast<int>(target(edge, graph)));
  return readers;
}

class StateGraph {
 public:
  StateGraph(const ProfiledGraph& graph, const std::string& file)
      : graph_(graph), past_(num_vertices(graph), NodeSet(num_vertices(graph))) {
    const std::vector<int> order = topological_order(graph, file);
    for (const int node : order) {
      past_[node].set(static_cast<std::size_t>(node));
      for (const auto edge : boost::make_iterator_range(in_edges(static_cast<std::size_t>(node), graph)))
        past_[node] |= past_[source(edge, graph)];
    }
    for (std::size_t node = 0; node < past_.size(); ++node) {
      readers_.push_back(readers_of(graph, static_cast<int>(node)));
      read_outside_.push_back(read_outside_past(node));
    }
    add_state(past_[order.front()], {order.front()});
    for (std::size_t state = 0; state < states_.size(); ++state) {
      grow(state);
      if (states_.size() > kMostDownsets)
        throw SpecError(
            fmt::format("{}: PipeDream's optimizer has more than {} places to cut this graph, too many for it: leave "
                        "--as-pipedream away",
                        file, kMostDownsets));
    }
  }

  /// Returns the states in the order of a depth-first search whose states stand behind none that they reach.
  PipedreamStates sorted() const {
    std::vector<std::size_t> finished;
    std::vector<char> seen(states_.size(), 0);
    std::vector<std::pair<std::size_t, std::size_t>> path = {{0, 0}};  // state, successors that were visited
    seen[0] = 1;
    while (!path.empty()) {
      auto& [state, visited] = path.back();
      if (visited == states_[state].next.size()) {
        finished.push_back(state);
        path.pop_back();
        continue;
      }
      const std::size_t next = states_[state].next[visited++];
      if (seen[next] == 0) path.emplace_back(next, 0);
      seen[next] = 1;
    }
    PipedreamStates sorted;
    for (auto state = finished.rbegin(); state != finished.rend(); ++state) append(sorted, states_[*state]);
    return sorted;
  }

 private:
  struct State {
    NodeSet nodes;
    std::vector<int> antichain;  ///< in the order in which PipeDream lists it
    std::vector<std::size_t> next;
  };

  /// Returns the past of the node that nodes outside of this past read.
  NodeSet read_outside_past(std::size_t of) const {
    NodeSet found(past_.size());
    const NodeSet& past = past_[of];
    for (auto node = past.find_first(); node != NodeSet::npos; node = past.find_next(node))
      for (const int reader : readers_of(graph_, static_cast<int>(node)))
        if (node != of && !past.test(static_cast<std::size_t>(reader))) found.set(node);
    return found;
  }

  std::size_t add_state(const NodeSet& nodes, std::vector<int> antichain) {
    const auto [found, is_new] = known_.emplace(nodes, states_.size());
    if (is_new) states_.push_back({.nodes = nodes, .antichain = std::move(antichain), .next = {}});
    return found->second;
  }

  /// Returns the antichain behind the nodes of its past that are read elsewhere.
  std::vector<int> augmented(const State& state) const {
    NodeSet extra(past_.size());
    for (const int node : state.antichain) extra |= read_outside_[node];
    std::vector<int> nodes;
    for (auto node = extra.find_first(); node != NodeSet::npos; node = extra.find_next(node))
      nodes.push_back(static_cast<int>(node));
    nodes.insert(nodes.end(), state.antichain.begin(), state.antichain.end());
    return nodes;
  }

  void grow(std::size_t number) {
    const std::vector<int> around = augmented(states_[number]);
    for (const int node : around) {
      for (const int reader : readers_[node]) {
        if (states_[number].nodes.test(static_cast<std::size_t>(reader))) continue;
        const NodeSet grown = states_[number].nodes | past_[reader];
        std::vector<int> antichain;
        for (const int old : around) {
          const int now = old == node ? reader : old;
          const bool read_within = std::ranges::any_of(
              readers_[now], [&](int other) { return grown.test(static_cast<std::size_t>(other)); });
          if (!read_within && std::ranges::find(antichain, now) == antichain.end()) antichain.push_back(now);
        }
        const std::size_t next = add_state(grown, std::move(antichain));
        states_[number].next.push_back(next);
      }
    }
  }

  void append(PipedreamStates& states, const State& state) const {
    double seconds = 0, activations = 0, weights = 0, outputs = 0;
    for (auto node = state.nodes.find_first(); node != NodeSet::npos; node = state.nodes.find_next(node)) {
      seconds += graph_[node].ways.front().seconds.count();
      activations += graph_[node].output_bytes;
      weights += graph_[node].ways.front().weight_bytes;
    }
    for (const int node : augmented(state)) outputs += graph_[static_cast<std::size_t>(node)].output_bytes;
    states.nodes.push_back(state.nodes);
    states.seconds.push_back(seconds);
    states.activation_bytes.push_back(activations);
    states.weight_bytes.push_back(weights);
    states.output_bytes.push_back(outputs);
  }

  const ProfiledGraph& graph_;
  std::vector<NodeSet> past_;  ///< [node] itself and all that it needs
  std::vector<NodeSet> read_outside_;
  std::vector<std::vector<int>> readers_;
  std::vector<State> states_;
  boost::unordered_map<NodeSet, std::size_t> known_;
};

}  // namespace

PipedreamStates pipedream_states(const ProfiledGraph& graph, const std::string& file) {
  return StateGraph(graph, file).sorted();
}

}}  // namespace plumb::planner
