#include "planner/price/memory/graph_memory.h"

#include <algorithm>
#include <map>
#include <set>

namespace plumb { inline namespace planner {
namespace {

constexpr std::int64_t kSinglePrecision = 4;

/// Returns the node whose output holds a node's output: flattening moves nothing.
int storage_of(const std::vector<GraphNode>& nodes, int node) {
  while (nodes[node].op == "flatten") node = nodes[node].inputs.front();
  return node;
}

/// The tensors that one node keeps: those between nodes (and whether its weight gradient reads them), and its own.
struct KeptByNode {
  std::map<int, bool> between;  ///< by the node that makes it
  std::int64_t own_bytes = 0;
  std::int64_t own_released_at_input_grad = 0;  ///< less the tensors that the input gradient adds
};

KeptByNode kept_by(const std::vector<GraphNode>& nodes, int index, std::int64_t element_bytes, std::int64_t samples) {
  const GraphNode& node = nodes[index];
  KeptByNode kept;
  const auto own = [&](std::int64_t bytes, bool needed_by_weight_grad) {
    kept.own_bytes += bytes;
    if (!needed_by_weight_grad) kept.own_released_at_input_grad += bytes;
  };
  if (node.layer) {
    for (const SavedTensor& tensor : saved_tensors(layer_program(*node.layer, {.microbatch = samples}))) {
      const std::int64_t bytes = tensor.bytes(element_bytes);
      if (tensor.from_input_grad) {
        kept.own_released_at_input_grad -= bytes;
      } else if (tensor.is_input) {
        kept.between[storage_of(nodes, node.inputs.front())] |= tensor.needed_by_weight_grad;
      } else {
        own(bytes, tensor.needed_by_weight_grad);
      }
    }
    return kept;
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (node.saves_input[i]) kept.between[storage_of(nodes, node.inputs[i])] |= node.has_products;
  if (node.saves_output) kept.between[index] |= false;
  for (const OwnTensor& tensor : node.own) {
    own(samples * tensor.elements * (tensor.single_precision ? kSinglePrecision : element_bytes),
        tensor.needed_by_weight_grad);
  }
  if (node.has_products) kept.own_released_at_input_grad -= samples * element_count(node.shape) * element_bytes;
  return kept;
}

std::int64_t tensor_bytes(const GraphNode& node, std::int64_t element_bytes, std::int64_t samples) {
  return samples * element_count(node.shape) * (node.tokens ? kSinglePrecision : element_bytes);
}

/// Returns the bytes of the gradients of its inputs, which stand while its input gradient runs.
std::int64_t backward_workspace(const std::vector<GraphNode>& nodes, const GraphNode& node, std::int64_t samples,
                                std::int64_t element_bytes) {
  if (node.layer)
    return workspace_bytes(layer_program(*node.layer, {.microbatch = samples}), Pass::kInputGrad, element_bytes);
  std::int64_t elements = 0;
  for (const int input : node.inputs)
    if (nodes[input].needs_grad) elements += samples * element_count(nodes[input].shape);
  return node.op == "flatten" ? 0 : elements * element_bytes;
}

}  // namespace

std::vector<GraphCut> graph_cuts(const std::vector<GraphNode>& nodes) {
  std::vector<int> last_reader(nodes.size(), -1);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const int input : nodes[i].inputs) last_reader[storage_of(nodes, input)] = static_cast<int>(i);
  std::vector<GraphCut> cuts(nodes.size() + 1);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (int place = static_cast<int>(i) + 1; place <= last_reader[i]; ++place) {
      // A reader behind a flattening counts as a reader of the flattening's input.
      const std::int64_t elements = element_count(nodes[i].shape);
      cuts[place].elements += elements;
      if (nodes[i].needs_grad) cuts[place].gradient_elements += elements;
      ++cuts[place].tensors;
    }
  }
  return cuts;
}

std::vector<LayerFootprint> graph_footprints(const std::vector<GraphNode>& nodes, int begin, int end,
                                             const TrainingSpec& training, std::int64_t samples, Recompute recompute) {
  const std::int64_t element_bytes = bytes_per_element(training.precision);
  std::vector<KeptByNode> kept;
  std::map<int, bool> needed;  // [node] tensors between nodes; true: a weight gradient reads it
  for (int i = begin; i < end; ++i) {
    kept.push_back(kept_by(nodes, i, element_bytes, samples));
    for (const auto& [tensor, by_weight_grad] : kept.back().between) needed[tensor] |= by_weight_grad;
  }
  std::set<int> counted;
  std::vector<LayerFootprint> footprints;
  const auto output_bytes = [&](int index) { return tensor_bytes(nodes[index], element_bytes, samples); };
  for (int first = begin; first < end;) {
    const bool rebuilt = recompute == Recompute::kFull && nodes[first].segment >= 0;
    int last = first + 1;
    while (rebuilt && last < end && nodes[last].segment == nodes[first].segment) ++last;
    LayerFootprint footprint{.output_bytes = output_bytes(last - 1), .rebuilt_whole = rebuilt};
    const auto count = [&](int tensor, std::int64_t& bytes) {
      if (!counted.insert(tensor).second) return;
      bytes += output_bytes(tensor);
      if (!needed[tensor]) footprint.released_at_input_grad_bytes += output_bytes(tensor);
    };
    for (int i = first; i < last; ++i) {
      const KeptByNode& own = kept[static_cast<std::size_t>(i - begin)];
      for (const ParameterTensor& tensor : nodes[i].parameters) footprint.parameters += element_count(tensor);
      footprint.backward_workspace_bytes =
          std::max(footprint.backward_workspace_bytes, backward_workspace(nodes, nodes[i], samples, element_bytes));
      (rebuilt ? footprint.rebuilt_bytes : footprint.kept_bytes) += own.own_bytes;
      footprint.released_at_input_grad_bytes += own.own_released_at_input_grad;
      if (rebuilt) {
        for (const int input : nodes[i].inputs)
          if (const int tensor = storage_of(nodes, input); tensor < first) count(tensor, footprint.kept_bytes);
      }
      for (const auto& [tensor, by_weight_grad] : own.between)
        count(tensor, rebuilt && tensor >= first ? footprint.rebuilt_bytes : footprint.kept_bytes);
    }
    footprints.push_back(footprint);
    first = last;
  }
  return footprints;
}

}}  // namespace plumb::planner
