#pragma once
// The operators that a layer graph may name. Each reads its own attributes, checks the shapes that it is given, and
// fills in the members of GraphNode. Each family has a file: image_operators.cpp, dense_operators.cpp,
// sequence_operators.cpp, elementwise_operators.cpp, tensor_operators.cpp. A new operator is a function there and a line
// in the file's table.
//
//   convolution  filters, kernel, stride 1, padding 0, dilation 1, groups 1 (each a number, or one for each axis: of
//                images rows and columns, of volumes planes, rows and columns; of sequences along the tokens), bias true,
//                activation none | relu
//   transposed_convolution  filters, kernel, stride 1, padding 0, output_padding 0, dilation 1, groups 1, bias true
//   max_pooling, average_pooling  kernel, stride (kernel), padding 0, ceil false;   adaptive_average_pooling  size
//   batch_norm, layer_norm (bias true), rms_norm;   flatten;   slice  axis, from, count
//   linear       out, bias true, activation none | relu | gelu, dropout 0, tied_to (the embedding whose table it reads)
//   mlp          ffn;   experts  count, ffn, per_token 1 (with their router)
//   embedding    vocab, hidden, tied_to;   positions  rows
//   lstm, gru, rnn  hidden, bidirectional false, bias true
//   additive_attention (query, memory)  hidden, normalise true
//   attention (queries [, memory])  heads, head_size, causal false, bias true, fused true, relative_buckets 0
//   matmul (a, b)  transpose false
//   relu, gelu, tanh, sigmoid, swish, softmax, log_softmax;   dropout  rate;   add, multiply, concat
//   reshape  shape (a view);   tensor_function  shape, parameters (shapes of weights), keeps inputs | output | nothing,
//                integers false (any other function of its inputs, which memory bounds)
//   input  shape | tokens;   loss  kind cross_entropy | squared_error

#include <string>
#include <string_view>
#include <vector>

#include "planner/graph/graph_node.h"
#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {

/// The attributes of an operator, and the nodes that feed it.
struct OperatorInputs {
  StrictObject& attributes;
  std::vector<const GraphNode*> nodes;

  const TensorShape& shape(std::size_t i = 0) const { return nodes[i]->shape; }
  /// Throws SpecError "PLACE: message".
  [[noreturn]] void fail(const std::string& message) const;
};

/// Returns the names of all operators in alphabetical order.
const std::vector<std::string>& operator_names();

/// Returns the node that `op` makes of its inputs. The caller sets the name, inputs, segment and gradient flags. Throws
/// SpecError with the place: an unknown operator (with the nearest known), too few or too many inputs, a missing or
/// senseless attribute, shapes that do not fit.
GraphNode make_node(const std::string& op, const OperatorInputs& inputs);

using OperatorFunction = GraphNode (*)(const OperatorInputs&);
struct Operator {
  std::string_view name;
  int least_inputs = 1;
  int most_inputs = 1;
  OperatorFunction make = nullptr;
};
const std::vector<Operator>& image_operators();
const std::vector<Operator>& dense_operators();
const std::vector<Operator>& sequence_operators();
const std::vector<Operator>& elementwise_operators();
const std::vector<Operator>& tensor_operators();

/// Adds y [rows, out] = x [rows, in] W^T of one sample: the products of its three passes, and their memory traffic.
void add_product(GraphNode& node, std::int64_t rows, std::int64_t out, std::int64_t in);

/// Returns a memory-bound kernel that reads and writes so many elements of a sample.
GraphKernel traffic(double elements, double fixed_elements = 0);

}}  // namespace plumb::planner
