#include "planner/shard/node_axes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

namespace plumb { inline namespace planner {
namespace {

/// Dimensions of tensors count from 1, since the batch is 0.
int last_dimension(const TensorShape& shape) {
  return static_cast<int>(shape.size());
}

struct Node {
  const GraphNode& node;
  std::vector<const GraphNode*> inputs;

  const TensorShape& shape() const { return node.shape; }
  const TensorShape& input(std::size_t i = 0) const { return inputs[i]->shape; }

  NodeAxis axis(ShardingKind kind, std::int64_t size, TensorSide output) const {
    return {.kind = kind, .size = size, .output = output, .inputs = std::vector<TensorSide>(inputs.size())};
  }
};

/// A dimension's kind by its place: the last one has the channels, the others tokens or pixels.
ShardingKind kind_of_dimension(int dimension, const TensorShape& shape) {
  if (dimension == last_dimension(shape)) return ShardingKind::kColumn;
  return shape.size() >= 3 ? ShardingKind::kSpatial : ShardingKind::kSequence;
}

/// An axis that output and inputs share under the same dimension.
NodeAxis along(const Node& of, int dimension) {
  const auto i = static_cast<std::size_t>(dimension - 1);
  NodeAxis axis = of.axis(kind_of_dimension(dimension, of.shape()), of.shape()[i], {.dimension = dimension});
  for (TensorSide& side : axis.inputs) side.dimension = dimension;
  return axis;
}

/// A matrix product whose weights are divided: by its outputs (column) and by its inputs (row), each also with the
/// tensor that is whole stored divided along the tokens.
void add_product_axes(const Node& of, std::int64_t columns, std::int64_t rows, bool inner,
                      std::vector<NodeAxis>& axes) {
  const int out = last_dimension(of.shape()), in = last_dimension(of.input());
  const bool has_tokens = of.shape().size() == 2 && of.input().size() == 2 && of.shape()[0] == of.input()[0];
  const auto add = [&](ShardingKind kind, std::int64_t size, TensorSide output, TensorSide input) {
    NodeAxis axis = of.axis(kind, size, output);
    for (TensorSide& side : axis.inputs) side = input;
    axis.divides_parameters = true;
    axes.push_back(axis);
  };
  const TensorSide whole{.dimension = -1, .summed = true}, scattered{.dimension = 1, .summed = true};
  if (inner) {  // columns of the first product are rows of the last one
    add(ShardingKind::kColumn, columns, whole, whole);
    if (has_tokens) add(ShardingKind::kColumn, columns, scattered, scattered);
    return;
  }
  add(ShardingKind::kColumn, columns, {.dimension = out}, whole);
  add(ShardingKind::kRow, rows, whole, {.dimension = in});
  if (!has_tokens) return;
  add(ShardingKind::kColumn, columns, {.dimension = out}, scattered);
  add(ShardingKind::kRow, rows, scattered, {.dimension = in});
}

void add_linear(const Node& of, std::vector<NodeAxis>& axes) {
  if (of.shape().size() == 2) axes.push_back(along(of, 1));
  add_product_axes(of, of.shape().back(), of.input().back(), false, axes);
}

/// Returns how many dimensions of an image its devices may share, from the first on: rows of pixels, planes and rows of a
/// volume. A row of pixels, or a sequence of tokens, stays whole where it is the last dimension of several.
int shared_dimensions(const TensorShape& image) {
  return std::max(1, last_dimension(image) - 2);
}

/// The sizes of a convolution's windows.
struct WindowSizes {
  std::int64_t kernel = 1;  ///< along each dimension
  std::int64_t groups = 1;  ///< of channels
};

/// `window` is the second size of the weights, which has the `channels` of one side for each place of the kernel and
/// each of `groups`.
WindowSizes window_sizes(const Node& of, std::int64_t channels) {
  if (of.node.layer) {
    const auto& layer = std::get<ConvolutionLayer>(*of.node.layer);
    return {.kernel = layer.kernel, .groups = layer.groups};
  }
  const auto product = std::ranges::find(of.node.forward, GraphKernel::Kind::kProduct, &GraphKernel::kind);
  const std::int64_t groups = product == of.node.forward.end() ? 1 : product->count;
  const double places =
      static_cast<double>(of.node.parameters.front().shape[1] * groups) / static_cast<double>(channels);
  const double kernel = std::pow(places, 1.0 / (last_dimension(of.input()) - 1));
  return {.kernel = std::max<std::int64_t>(1, std::llround(kernel)), .groups = groups};
}

/// The channels of a convolution: those of each group, or the columns and rows of its product.
void add_channel_axes(const Node& of, std::int64_t groups, std::vector<NodeAxis>& axes) {
  if (groups == 1) return add_product_axes(of, of.shape().back(), of.input().back(), false, axes);
  NodeAxis grouped = of.axis(ShardingKind::kColumn, groups, {.dimension = last_dimension(of.shape())});
  grouped.inputs[0].dimension = last_dimension(of.input());
  grouped.divides_parameters = true;
  axes.push_back(grouped);
}

/// Devices that share the places of an image along a dimension exchange those that a window reaches beyond their own:
/// `reached` of the tensor `exchanged`.
void add_spatial_axis(const Node& of, int dimension, std::int64_t reached, const TensorShape& exchanged,
                      std::vector<NodeAxis>& axes) {
  const auto i = static_cast<std::size_t>(dimension - 1);
  NodeAxis spatial = of.axis(ShardingKind::kSpatial, std::min(of.shape()[i], of.input()[i]), {.dimension = dimension});
  spatial.inputs[0].dimension = dimension;
  if (reached > 0) {
    spatial.forward = {
        {.kind = CollectiveKind::kAllGather, .elements = reached * (element_count(exchanged) / exchanged[i])}};
    spatial.backward = spatial.forward;
  }
  axes.push_back(spatial);
}

/// A window of the input gives a place of the output: inputs are exchanged, and their gradients.
void add_convolution(const Node& of, std::vector<NodeAxis>& axes) {
  const WindowSizes sizes = window_sizes(of, of.input().back());
  for (int dimension = 1; dimension <= shared_dimensions(of.input()); ++dimension)
    add_spatial_axis(of, dimension, sizes.kernel - 1, of.input(), axes);
  add_channel_axes(of, sizes.groups, axes);
}

/// A place of the input gives a window of the output, and windows overlap where they are longer than the stride: partial
/// sums of outputs are exchanged, and their gradients.
void add_transposed_convolution(const Node& of, std::vector<NodeAxis>& axes) {
  const WindowSizes sizes = window_sizes(of, of.shape().back());
  for (int dimension = 1; dimension <= shared_dimensions(of.input()); ++dimension) {
    const auto i = static_cast<std::size_t>(dimension - 1);
    const std::int64_t stride = std::llround(static_cast<double>(of.shape()[i]) / static_cast<double>(of.input()[i]));
    add_spatial_axis(of, dimension, sizes.kernel - std::max<std::int64_t>(1, stride), of.shape(), axes);
  }
  add_channel_axes(of, sizes.groups, axes);
}

void add_pooling(const Node& of, std::vector<NodeAxis>& axes) {
  axes.push_back(along(of, last_dimension(of.shape())));
  for (int dimension = 1; dimension <= shared_dimensions(of.input()); ++dimension) {
    const auto i = static_cast<std::size_t>(dimension - 1);
    if (of.input()[i] % of.shape()[i] == 0 && of.shape()[i] > 1) add_spatial_axis(of, dimension, 0, of.input(), axes);
  }
}

/// Functions of each number: every dimension but the `kept` last ones may be divided.
void add_pointwise(const Node& of, int kept, bool parameters_by_channel, std::vector<NodeAxis>& axes) {
  for (int dimension = 1; dimension <= last_dimension(of.shape()) - kept; ++dimension) {
    axes.push_back(along(of, dimension));
    axes.back().divides_parameters = parameters_by_channel && dimension == last_dimension(of.shape());
  }
}

void add_embedding(const Node& of, std::vector<NodeAxis>& axes) {
  NodeAxis tokens = of.axis(ShardingKind::kSequence, of.shape()[0], {.dimension = 1});
  tokens.inputs[0].dimension = 1;
  NodeAxis columns = of.axis(ShardingKind::kColumn, of.shape().back(), {.dimension = last_dimension(of.shape())});
  NodeAxis rows = of.axis(ShardingKind::kRow, of.node.parameters.front().shape[0], {.dimension = -1, .summed = true});
  columns.divides_parameters = rows.divides_parameters = true;
  axes.insert(axes.end(), {tokens, columns, rows});
}

/// Heads are columns of the first projection and rows of the last. Devices that share the queries gather the keys and
/// values.
void add_attention(const Node& of, std::vector<NodeAxis>& axes) {
  std::int64_t heads = 1, keys = of.input(of.inputs.size() - 1).front();
  for (const OwnTensor& tensor : of.node.own) {
    if (tensor.name == "log-sum-exp") heads = tensor.elements / of.shape().front();
    if (tensor.name == "probabilities") heads = tensor.elements / of.shape().front() / keys;
  }
  NodeAxis sequence = along(of, 1);
  std::int64_t gathered = 0;
  for (const OwnTensor& tensor : of.node.own)
    if (tensor.name == "keys and values") gathered = tensor.elements;
  sequence.forward = {{.kind = CollectiveKind::kAllGather, .elements = gathered}};
  sequence.backward = {{.kind = CollectiveKind::kReduceScatter, .elements = gathered}};
  if (of.inputs.size() == 1) axes.push_back(sequence);
  add_product_axes(of, heads, heads, true, axes);
}

/// [.., m, k] x [.., k, n]: leading dimensions are shared, m is the left's, n the right's, k is summed.
void add_matmul(const Node& of, std::vector<NodeAxis>& axes) {
  const int rank = last_dimension(of.shape());
  const TensorShape &left = of.input(0), &right = of.input(1);
  if (left.size() != right.size()) return;
  const bool transposed = right.back() == left.back() && right[right.size() - 2] == of.shape().back();
  const TensorSide whole{.dimension = -1, .summed = true};
  for (int dimension = 1; dimension <= rank - 2; ++dimension) {
    axes.push_back(along(of, dimension));
    axes.back().kind = ShardingKind::kColumn;  // heads, the columns of the projections before
  }
  NodeAxis rows = of.axis(ShardingKind::kSequence, of.shape()[rank - 2], {.dimension = rank - 1});
  rows.inputs = {{.dimension = rank - 1}, whole};
  NodeAxis columns = of.axis(ShardingKind::kColumn, of.shape().back(), {.dimension = rank});
  columns.inputs = {whole, {.dimension = transposed ? rank - 1 : rank}};
  NodeAxis depth = of.axis(ShardingKind::kRow, left.back(), whole);
  depth.inputs = {{.dimension = rank}, {.dimension = transposed ? rank : rank - 1}};
  axes.insert(axes.end(), {rows, columns, depth});
}

/// Tokens travel to the devices of their experts and back (Lepikhin et al. 2020); the tokens themselves are divided
/// along the batch or the sequence.
void add_experts(const Node& of, std::vector<NodeAxis>& axes) {
  if (of.shape().size() == 2) axes.push_back(along(of, 1));
  const std::int64_t experts = of.node.parameters.back().shape.front();
  const std::int64_t routed = of.node.own.empty() ? element_count(of.shape()) : of.node.own.front().elements;
  for (const int dimension : {0, 1}) {
    if (dimension == 1 && of.shape().size() != 2) continue;
    NodeAxis axis = of.axis(ShardingKind::kExpert, experts, {.dimension = dimension});
    axis.inputs[0].dimension = dimension;
    axis.divides_parameters = true;
    axis.forward.assign(2, {.kind = CollectiveKind::kAllToAll, .elements = routed});
    axis.backward = axis.forward;
    axes.push_back(axis);
  }
}

/// A view: the first dimension of each group of dimensions that hold the same numbers is shared.
void add_view(const Node& of, std::vector<NodeAxis>& axes) {
  const TensorShape &from = of.input(), &to = of.shape();
  for (std::size_t i = 0, k = 0; i < from.size() && k < to.size();) {
    while (i < from.size() && from[i] == 1) ++i;
    while (k < to.size() && to[k] == 1) ++k;
    if (i == from.size() || k == to.size()) return;
    NodeAxis axis = of.axis(kind_of_dimension(static_cast<int>(k) + 1, to), std::min(from[i], to[k]),
                            {.dimension = static_cast<int>(k) + 1});
    axis.inputs[0].dimension = static_cast<int>(i) + 1;
    if (std::max(from[i], to[k]) % axis.size == 0) axes.push_back(axis);
    std::int64_t left = from[i++], right = to[k++];
    while (left != right && (left < right ? i < from.size() : k < to.size())) {
      if (left < right) {
        left *= from[i++];
      } else {
        right *= to[k++];
      }
    }
  }
}

/// Any function: a dimension is shared where every input has it at the same place, or where its sizes are unique, as in
/// a transpose. Inputs that are repeated along it are whole.
void add_function(const Node& of, std::vector<NodeAxis>& axes) {
  const TensorShape& shape = of.shape();
  TensorShape sorted = shape;
  std::ranges::sort(sorted);
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] < 2) continue;
    NodeAxis axis =
        of.axis(kind_of_dimension(static_cast<int>(k) + 1, shape), shape[k], {.dimension = static_cast<int>(k) + 1});
    bool fits = true;
    for (std::size_t i = 0; i < of.inputs.size() && fits; ++i) {
      const TensorShape& from = of.input(i);
      TensorShape other = from;
      std::ranges::sort(other);
      const std::size_t behind = shape.size() - k;  // dimensions align at the end
      if (from != shape && other == sorted) {
        fits = std::ranges::count(from, shape[k]) == 1;
        axis.inputs[i].dimension = static_cast<int>(std::ranges::find(from, shape[k]) - from.begin()) + 1;
      } else if (behind > from.size() || from[from.size() - behind] == 1) {
        axis.inputs[i].summed = true;
      } else {
        fits = from[from.size() - behind] == shape[k] && from.size() == shape.size();
        axis.inputs[i].dimension = static_cast<int>(from.size() - behind) + 1;
      }
    }
    if (fits && of.node.parameters.empty()) axes.push_back(axis);
  }
}

/// Rows of logits divided by columns sum their largest number and their denominator.
void add_loss(const Node& of, std::vector<NodeAxis>& axes) {
  const TensorShape& logits = of.input();
  for (int dimension = 1; dimension <= last_dimension(logits); ++dimension) {
    NodeAxis axis = of.axis(kind_of_dimension(dimension, logits), logits[static_cast<std::size_t>(dimension - 1)], {});
    axis.inputs[0].dimension = dimension;
    if (dimension == last_dimension(logits))
      axis.forward.assign(2,
                          {.kind = CollectiveKind::kAllReduce, .elements = 2 * element_count(logits) / logits.back()});
    axes.push_back(axis);
  }
}

void add_slice(const Node& of, std::vector<NodeAxis>& axes) {
  if (of.input().size() != of.shape().size()) return;
  for (int dimension = 1; dimension <= last_dimension(of.shape()); ++dimension)
    if (of.input()[static_cast<std::size_t>(dimension - 1)] == of.shape()[static_cast<std::size_t>(dimension - 1)])
      axes.push_back(along(of, dimension));
}

void add_positions(const Node& of, std::vector<NodeAxis>& axes) {
  add_pointwise(of, 0, true, axes);
  axes.front().divides_parameters = true;  // a device needs the rows of its tokens only
}

using AddAxes = void (*)(const Node&, std::vector<NodeAxis>&);

const std::map<std::string, AddAxes, std::less<>>& axis_rules() {
  static const std::map<std::string, AddAxes, std::less<>> kRules = [] {
    std::map<std::string, AddAxes, std::less<>> rules = {{"linear", add_linear},
                                                         {"convolution", add_convolution},
                                                         {"transposed_convolution", add_transposed_convolution},
                                                         {"embedding", add_embedding},
                                                         {"attention", add_attention},
                                                         {"matmul", add_matmul},
                                                         {"experts", add_experts},
                                                         {"loss", add_loss},
                                                         {"slice", add_slice},
                                                         {"tensor_function", add_function},
                                                         {"flatten", add_view},
                                                         {"reshape", add_view},
                                                         {"positions", add_positions}};
    for (const char* op : {"max_pooling", "average_pooling", "adaptive_average_pooling"}) rules[op] = add_pooling;
    for (const char* op : {"add", "multiply", "relu", "gelu", "tanh", "sigmoid", "swish", "dropout"})
      rules[op] = [](const Node& of, std::vector<NodeAxis>& axes) { add_pointwise(of, 0, false, axes); };
    for (const char* op : {"softmax", "log_softmax", "layer_norm", "rms_norm", "concat"})
      rules[op] = [](const Node& of, std::vector<NodeAxis>& axes) { add_pointwise(of, 1, false, axes); };
    rules["batch_norm"] = [](const Node& of, std::vector<NodeAxis>& axes) { add_pointwise(of, 0, true, axes); };
    rules["mlp"] = [](const Node& of, std::vector<NodeAxis>& axes) {
      add_product_axes(of, std::get<MlpLayer>(*of.node.layer).ffn, 1, true, axes);
    };
    return rules;
  }();
  return kRules;
}

}  // namespace

std::string_view sharding_name(ShardingKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"replicate", "batch", "sequence", "spatial",
                                                      "column",    "row",   "expert"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<NodeAxis> node_axes(const std::vector<GraphNode>& nodes, int index) {
  Node of{.node = nodes[static_cast<std::size_t>(index)]};
  for (const int input : of.node.inputs) of.inputs.push_back(&nodes[static_cast<std::size_t>(input)]);
  NodeAxis batch = of.axis(ShardingKind::kBatch, 0, {.dimension = 0});
  for (TensorSide& side : batch.inputs) side.dimension = 0;
  std::vector<NodeAxis> axes = {batch};
  if (const auto rule = axis_rules().find(of.node.op); rule != axis_rules().end()) rule->second(of, axes);
  return axes;
}

}}  // namespace plumb::planner
