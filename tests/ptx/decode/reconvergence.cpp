#include "tests/ptx/decode/reconvergence.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dominator_tree.hpp>
#include <boost/graph/reverse_graph.hpp>

namespace plumb::test::ptx {
namespace {

using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;
using Vertex = boost::graph_traits<FlowGraph>::vertex_descriptor;

/// A vertex for each instruction, and one for the end.
FlowGraph flow_of(const std::vector<Instruction>& instructions) {
  const std::size_t end = instructions.size();
  FlowGraph graph(end + 1);
  for (std::size_t i = 0; i < end; ++i) {
    const Instruction& in = instructions[i];
    if (in.flow == Flow::kBranch) boost::add_edge(i, static_cast<Vertex>(in.target), graph);
    if (in.flow == Flow::kExit) boost::add_edge(i, end, graph);
    if (in.flow == Flow::kNext || in.guard != Instruction::kNoGuard) boost::add_edge(i, i + 1, graph);
  }
  return graph;
}

}  // namespace

void set_reconvergence(std::vector<Instruction>& instructions) {
  const FlowGraph graph = flow_of(instructions);
  const Vertex none = boost::graph_traits<FlowGraph>::null_vertex();
  const Vertex end = instructions.size();
  std::vector<Vertex> dominators(instructions.size() + 1, none);
  const auto indices = get(boost::vertex_index, graph);
  boost::lengauer_tarjan_dominator_tree(boost::make_reverse_graph(graph), end,
                                        boost::make_iterator_property_map(dominators.begin(), indices));
  // A loop without an end has no way to it.
  for (std::size_t i = 0; i < instructions.size(); ++i)
    instructions[i].reconvergence = static_cast<int>(dominators[i] == none ? end : dominators[i]);
}

}  // namespace plumb::test::ptx
