#pragma once
// A node of a layer graph as it is computed: its output's shape, its parameters, the kernels of each pass and what it
// keeps for its backward. All sizes are those of one sample (an image, a sequence) unless said otherwise.
//
// Images are [height, width, channels], sequences [tokens, channels], vectors [channels], tokens [tokens]: the channels
// come last, as in kernels/.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/layer/layer.h"

namespace plumb { inline namespace planner {

using TensorShape = std::vector<std::int64_t>;

/// The product of its sizes; 1 of none.
std::int64_t element_count(const TensorShape& shape);

/// "[56, 56, 64]"
std::string to_text(const TensorShape& shape);

/// A kernel of one pass over a node.
struct GraphKernel {
  enum class Kind : std::uint8_t {
    kProduct,    ///< `count` products of [rows, depth] and [depth, columns], a convolution as its implicit one
    kAttention,  ///< softmax(Q K^T) V without its scores in memory: `attention_flops`
    kTraffic,    ///< bound by memory
  };
  /// What more samples enlarge.
  enum class Grows : std::uint8_t { kRows, kDepth, kCount };

  Kind kind = Kind::kTraffic;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  std::int64_t count = 1;
  Grows grows = Grows::kRows;
  double attention_flops = 0;
  double elements = 0;        ///< that must cross memory, of the computing precision
  double fixed_elements = 0;  ///< the same whatever the number of samples: weights
  std::int64_t repeats = 1;   ///< one after the other, as the steps of a recurrence

  friend bool operator==(const GraphKernel&, const GraphKernel&) = default;
};

/// FLOPs of a sample; nothing for what memory bounds.
double product_flops(const GraphKernel& kernel);

/// What a node keeps besides tensors that pass from node to node.
struct OwnTensor {
  std::string name;
  std::int64_t elements = 0;
  bool single_precision = false;       ///< 4 bytes an element whatever the precision
  bool needed_by_weight_grad = false;  ///< see SavedTensor

  friend bool operator==(const OwnTensor&, const OwnTensor&) = default;
};

struct GraphNode {
  std::string name;
  std::string op;
  std::vector<int> inputs;  ///< nodes, all of them before this one
  TensorShape shape;        ///< of the output; empty for one that ends the graph
  int segment = -1;         ///< the use of a block that it belongs to, rebuilt as one by recomputation; -1: none
  bool tokens = false;      ///< the output is integers, without a gradient
  bool needs_grad = true;   ///< something before it, or it, learns
  std::optional<Layer>
      layer;          ///< the kind that the executor runs (kernels/layer/layer.h), which then says all the rest
  bool runs = false;  ///< the executor runs it: it has a layer, or is nothing to compute
  std::vector<ParameterTensor> parameters;
  int tied_to = -1;  ///< the node whose table it shares: its first parameter is that one
  std::vector<GraphKernel> forward, input_grad, weight_grad;
  std::vector<bool> saves_input;  ///< [input]
  bool saves_output = false;
  bool has_products = false;  ///< its weight gradient reads what it saves of its inputs, and its output's gradient
  std::vector<OwnTensor> own;

  friend bool operator==(const GraphNode&, const GraphNode&) = default;
};

/// Trained parameters of a node, a shared table left out.
std::int64_t parameter_count(const GraphNode& node);

/// FLOPs of the products of one sample's forward: two for each multiply and add.
double forward_flops(const GraphNode& node);

}}  // namespace plumb::planner
