#pragma once
// A node of a layer graph as it is computed: its output's shape, its parameters, the kernels of each pass and the
// tensors that it keeps for its backward. All sizes are those of one sample (an image, a sequence) unless said
// otherwise.
//
// Images are [height, width, channels], sequences [tokens, channels], vectors [channels], tokens [tokens]: the channels
// come last, like in kernels/.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/layer.h"

namespace plumb { inline namespace planner {

using TensorShape = std::vector<std::int64_t>;

/// Returns the product of the sizes, 1 for an empty shape.
std::int64_t element_count(const TensorShape& shape);

/// Returns the shape as text: "[56, 56, 64]".
std::string to_text(const TensorShape& shape);

/// A kernel of one pass over a node.
struct GraphKernel {
  enum class Kind : std::uint8_t {
    kProduct,    ///< `count` products of [rows, depth] and [depth, columns]; a convolution is its implicit product
    kAttention,  ///< softmax(Q K^T) V without its scores in memory: `attention_flops`
    kTraffic,    ///< a kernel that memory bounds
  };
  /// The size that grows with the number of samples.
  enum class Grows : std::uint8_t { kRows, kDepth, kCount };

  Kind kind = Kind::kTraffic;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  std::int64_t count = 1;
  Grows grows = Grows::kRows;
  double attention_flops = 0;
  double elements = 0;        ///< numbers of the computing precision that cross memory for each sample
  double fixed_elements = 0;  ///< numbers that cross memory once for all samples: weights
  std::int64_t repeats = 1;   ///< times that the kernel runs one after the other, like the steps of a recurrence

  friend bool operator==(const GraphKernel&, const GraphKernel&) = default;
};

/// Returns the FLOPs of one sample, 0 for a kernel that memory bounds.
double product_flops(const GraphKernel& kernel);

/// A tensor that a node keeps besides the tensors that pass from node to node.
struct OwnTensor {
  std::string name;
  std::int64_t elements = 0;
  bool single_precision = false;       ///< 4 bytes an element whatever the precision
  bool needed_by_weight_grad = false;  ///< see SavedTensor (kernels/layer.h)

  friend bool operator==(const OwnTensor&, const OwnTensor&) = default;
};

struct GraphNode {
  std::string name;
  std::string op;
  std::vector<int> inputs;  ///< indices of nodes, all of them before this one
  TensorShape shape;        ///< shape of the output; empty for a node that ends the graph
  int segment = -1;         ///< use of a block to which the node belongs, which recomputation rebuilds as one; -1: none
  bool tokens = false;      ///< the output is integers, without a gradient
  bool needs_grad = true;   ///< the node, or one before it, has parameters to learn
  /// The kind of layer that the executor runs (kernels/layer.h); where it is set, it gives the kernels, tensors
  /// and FLOPs.
  std::optional<Layer> layer;
  bool runs = false;  ///< the executor runs the node: it has a layer, or nothing to compute
  std::vector<ParameterTensor> parameters;
  int tied_to = -1;  ///< node whose table this one shares: its first parameter is that table
  std::vector<GraphKernel> forward, input_grad, weight_grad;
  std::vector<bool> saves_input;  ///< [input] true where the node keeps that input
  bool saves_output = false;
  bool has_products = false;  ///< the weight gradient reads the kept inputs and the output's gradient
  std::vector<OwnTensor> own;

  friend bool operator==(const GraphNode&, const GraphNode&) = default;
};

/// Returns the trained parameters of a node without a table that it shares with an earlier one.
std::int64_t parameter_count(const GraphNode& node);

/// Returns the FLOPs of the products of one sample's forward: two for each multiply and add.
double forward_flops(const GraphNode& node);

}}  // namespace plumb::planner
