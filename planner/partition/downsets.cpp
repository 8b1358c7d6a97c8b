#include "planner/partition/downsets.h"

#include <algorithm>
#include <optional>

#include <boost/unordered_set.hpp>

namespace plumb { inline namespace planner {
namespace {

std::vector<NodeSet> inputs_of(const ProfiledGraph& graph) {
  const std::size_t nodes = num_vertices(graph);
  std::vector<NodeSet> inputs(nodes, NodeSet(nodes));
  for (const auto edge : boost::make_iterator_range(edges(graph))) inputs[target(edge, graph)].set(source(edge, graph));
  return inputs;
}

/// Returns every downset, those of one size behind those that are smaller; nothing if there are more than `most`.
std::optional<std::vector<NodeSet>> every_downset(const ProfiledGraph& graph, std::size_t most) {
  const std::size_t nodes = num_vertices(graph);
  if (nodes >= most) return std::nullopt;
  const std::vector<NodeSet> inputs = inputs_of(graph);
  std::vector<NodeSet> sets = {NodeSet(nodes)};
  std::size_t begin = 0;
  for (std::size_t size = 0; size < nodes; ++size) {
    boost::unordered_set<NodeSet> larger;
    const std::size_t end = sets.size();
    for (; begin < end; ++begin) {
      for (std::size_t node = 0; node < nodes; ++node) {
        if (sets[begin].test(node) || !inputs[node].is_subset_of(sets[begin])) continue;
        NodeSet grown = sets[begin];
        grown.set(node);
        if (!larger.insert(grown).second) continue;
        sets.push_back(std::move(grown));
        if (sets.size() > most) return std::nullopt;
      }
    }
  }
  return sets;
}

std::vector<NodeSet> beginnings(const ProfiledGraph& graph, const std::vector<int>& order, std::size_t clusters) {
  double all = 0;
  for (const int node : order) all += graph[static_cast<std::size_t>(node)].ways.front().seconds.count();
  const auto nodes = static_cast<double>(order.size()), count = static_cast<double>(clusters);
  std::vector<NodeSet> sets = {NodeSet(order.size())};
  NodeSet placed(order.size());
  double seconds = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    placed.set(static_cast<std::size_t>(order[i]));
    seconds += graph[static_cast<std::size_t>(order[i])].ways.front().seconds.count();
    const double share = all > 0 ? seconds / all : static_cast<double>(i + 1) / nodes;
    const bool last = i + 1 == order.size();
    if (last || (share * count >= static_cast<double>(sets.size()) && sets.size() < clusters)) sets.push_back(placed);
  }
  return sets;
}

}  // namespace

Downsets downsets_of(const ProfiledGraph& graph, const std::vector<int>& order, std::size_t most,
                     std::size_t clusters) {
  if (std::optional<std::vector<NodeSet>> every = every_downset(graph, most)) {
    const bool chain = every->size() == order.size() + 1;
    return {.sets = *std::move(every), .all = true, .chain = chain};
  }
  return {.sets = beginnings(graph, order, clusters), .all = false, .chain = true};
}

double bytes_out(const ProfiledGraph& graph, const NodeSet& set) {
  double bytes = 0;
  for (auto node = set.find_first(); node != NodeSet::npos; node = set.find_next(node)) {
    const auto readers = boost::make_iterator_range(out_edges(node, graph));
    const bool read = std::ranges::any_of(readers, [&](const auto& edge) { return !set.test(target(edge, graph)); });
    if (read) bytes += graph[node].output_bytes;
  }
  return bytes;
}

}}  // namespace plumb::planner
