#include <algorithm>

#include <fmt/format.h>

#include "planner/graph/operators.h"

namespace plumb { inline namespace planner {
namespace {

void require_sequence(const OperatorInputs& in, std::size_t i, std::string_view op) {
  if (in.nodes[i]->tokens || in.shape(i).size() != 2) {
    in.fail(fmt::format("{} works on [tokens, channels], and its input is {}", op, to_text(in.shape(i))));
  }
}

/// Returns `count` products of [rows, depth] and [depth, columns] for each sample, between activations.
GraphKernel batched(std::int64_t count, std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  return {.kind = GraphKernel::Kind::kProduct,
          .rows = rows,
          .columns = columns,
          .depth = depth,
          .count = count,
          .grows = GraphKernel::Grows::kCount,
          .elements = static_cast<double>(count * (rows * depth + depth * columns + rows * columns))};
}

/// A recurrent layer: the gates of a token's cell, what a cell remembers besides its output, and what its backward needs
/// of a gate beyond its value.
struct Cell {
  std::string_view name;
  std::int64_t gates;
  std::int64_t memories = 0;  ///< [channels] of a token, beside the output
  std::int64_t parts = 0;  ///< [channels] of a token: a gate's recurrent product apart, which another gate multiplies
};

/// Long short-term memory (Hochreiter & Schmidhuber 1997), gated recurrent units (Cho et al. 2014; the reset gate
/// multiplies the recurrent product, as cuDNN has it), and Elman's network (1990).
constexpr Cell kLstm = {.name = "lstm", .gates = 4, .memories = 1};
constexpr Cell kGru = {.name = "gru", .gates = 3, .parts = 1};
constexpr Cell kRnn = {.name = "rnn", .gates = 1};

/// A recurrent layer with two biases for each gate, as cuDNN has them. The product of the inputs covers all tokens at
/// once; a product [samples, h] x [h, gates h] follows for each token in turn.
GraphNode recurrent(const OperatorInputs& in, const Cell& cell) {
  require_sequence(in, 0, cell.name);
  const std::int64_t tokens = in.shape()[0], channels = in.shape()[1];
  const std::int64_t hidden = in.attributes.positive_integer("hidden");
  const int directions = in.attributes.boolean_or("bidirectional", false) ? 2 : 1;
  const bool bias = in.attributes.boolean_or("bias", true);
  const std::int64_t gates = cell.gates * hidden;
  GraphNode node{.shape = {tokens, directions * hidden}};
  for (int direction = 0; direction < directions; ++direction) {
    node.parameters.push_back({"input.weight", {gates, channels}});
    node.parameters.push_back({"recurrent.weight", {gates, hidden}});
    if (bias) node.parameters.push_back({"input.bias", {gates}});
    if (bias) node.parameters.push_back({"recurrent.bias", {gates}});
    add_product(node, tokens, gates, channels);
    GraphKernel step{.kind = GraphKernel::Kind::kProduct,
                     .rows = 1,
                     .columns = gates,
                     .depth = hidden,
                     .elements = static_cast<double>(gates + hidden),
                     .fixed_elements = static_cast<double>(gates * hidden),
                     .repeats = tokens};
    node.forward.push_back(step);
    std::swap(step.columns, step.depth);
    node.input_grad.insert(node.input_grad.end() - 1, step);
    node.weight_grad.push_back({.kind = GraphKernel::Kind::kProduct,
                                .rows = gates,
                                .columns = hidden,
                                .depth = tokens,
                                .grows = GraphKernel::Grows::kDepth,
                                .elements = static_cast<double>(tokens * (gates + hidden)),
                                .fixed_elements = static_cast<double>(2 * gates * hidden)});
    // Forward reads both products of a gate and writes what is kept; backward reads that and the output's gradient, and
    // writes the gradients of the gates' sums.
    const std::int64_t kept = gates + (cell.memories + cell.parts) * hidden;
    node.forward.push_back(traffic(static_cast<double>(tokens * (gates + kept + hidden))));
    node.input_grad.push_back(traffic(static_cast<double>(tokens * (2 * gates + kept + hidden))));
  }
  node.saves_input = {true};
  node.saves_output = true;
  node.own.push_back({.name = "gates", .elements = directions * tokens * gates, .needed_by_weight_grad = true});
  if (cell.memories > 0)
    node.own.push_back({.name = "cells", .elements = directions * tokens * cell.memories * hidden});
  if (cell.parts > 0)
    node.own.push_back({.name = "recurrent parts", .elements = directions * tokens * cell.parts * hidden});
  return node;
}

GraphNode lstm(const OperatorInputs& in) {
  return recurrent(in, kLstm);
}

GraphNode gru(const OperatorInputs& in) {
  return recurrent(in, kGru);
}

GraphNode rnn(const OperatorInputs& in) {
  return recurrent(in, kRnn);
}

/// Softmax attention with its four projections (Vaswani et al. 2017). Keys and values come from the second input where
/// there is one. Fused attention keeps its scores out of memory; unfused attention keeps the probabilities, as a bias
/// by distance needs (Raffel et al. 2020).
GraphNode attention(const OperatorInputs& in) {
  for (std::size_t i = 0; i < in.nodes.size(); ++i) require_sequence(in, i, "attention");
  const bool crosses = in.nodes.size() == 2;
  const TensorShape& source = in.shape(crosses ? 1 : 0);
  const std::int64_t queries = in.shape()[0], channels = in.shape()[1], keys = source[0];
  const std::int64_t heads = in.attributes.positive_integer("heads");
  if (!in.attributes.has("head_size") && channels % heads != 0) {
    in.attributes.fail("heads", fmt::format("{} heads do not divide {} channels: give a head_size", heads, channels));
  }
  const std::int64_t size = in.attributes.positive_integer_or("head_size", std::max<std::int64_t>(1, channels / heads));
  const bool causal = in.attributes.boolean_or("causal", false), bias = in.attributes.boolean_or("bias", true);
  const bool fused = in.attributes.boolean_or("fused", true);
  const std::int64_t buckets = in.attributes.non_negative_integer_or("relative_buckets", 0);
  if (causal && crosses) in.attributes.fail("causal", "the tokens of a memory are no past: leave it out");
  const std::int64_t inner = heads * size;

  GraphNode node{.shape = {queries, channels}};
  const auto project = [&](const std::string& name, std::int64_t rows, std::int64_t out, std::int64_t from) {
    node.parameters.push_back({name + ".weight", {out, from}});
    if (bias) node.parameters.push_back({name + ".bias", {out}});
    add_product(node, rows, out, from);
    if (bias) {
      node.forward.push_back(traffic(2 * static_cast<double>(rows * out)));
      node.weight_grad.push_back(traffic(static_cast<double>(rows * out)));
    }
  };
  if (crosses) {
    project("query", queries, inner, channels);
    project("key_value", keys, 2 * inner, source[1]);
  } else {
    project("qkv", queries, 3 * inner, channels);
  }
  const double pairs = causal ? static_cast<double>(queries) * static_cast<double>(queries + 1) / 2
                              : static_cast<double>(queries) * static_cast<double>(keys);
  const double moved = 2 * static_cast<double>((queries + keys) * inner);
  if (fused) {
    const double product = 2 * pairs * static_cast<double>(inner);
    node.forward.push_back({.kind = GraphKernel::Kind::kAttention, .attention_flops = 2 * product, .elements = moved});
    node.input_grad.push_back(
        {.kind = GraphKernel::Kind::kAttention, .attention_flops = 5 * product, .elements = 2 * moved});
    node.own.push_back({.name = "log-sum-exp", .elements = queries * heads, .single_precision = true});
  } else {
    const auto scores = static_cast<double>(queries * keys * heads);
    node.forward.push_back(batched(heads, queries, keys, size));
    node.forward.push_back(traffic(2 * scores, buckets > 0 ? scores : 0));  // bias and softmax
    node.forward.push_back(batched(heads, queries, size, keys));
    // The gradients of the probabilities and of the values come first, those of the queries and of the keys follow.
    for (const std::int64_t columns : {keys, size}) {
      node.input_grad.push_back(batched(heads, queries, columns, columns == keys ? size : keys));
      node.input_grad.push_back(batched(heads, keys, size, queries));
    }
    node.input_grad.push_back(traffic(3 * scores));
    node.own.push_back({.name = "probabilities", .elements = queries * keys * heads});
  }
  node.own.push_back({.name = "queries", .elements = queries * inner, .needed_by_weight_grad = true});
  node.own.push_back({.name = "keys and values", .elements = 2 * keys * inner, .needed_by_weight_grad = true});
  node.own.push_back({.name = "attention output", .elements = queries * inner, .needed_by_weight_grad = true});
  project("output", queries, channels, inner);
  if (buckets > 0) node.parameters.push_back({"relative.table", {buckets, heads}});
  node.saves_input.assign(in.nodes.size(), true);
  return node;
}

/// Computes v tanh(W q + U k + b) for each pair of query and key (Bahdanau et al. 2015), normalised like GNMT's (Wu et
/// al. 2016).
GraphNode additive_attention(const OperatorInputs& in) {
  require_sequence(in, 0, "additive_attention");
  require_sequence(in, 1, "additive_attention");
  const std::int64_t queries = in.shape()[0], keys = in.shape(1)[0], memory = in.shape(1)[1];
  const std::int64_t hidden = in.attributes.positive_integer("hidden");
  GraphNode node{.shape = {queries, memory}};
  node.parameters.push_back({"query.weight", {hidden, in.shape()[1]}});
  node.parameters.push_back({"key.weight", {hidden, memory}});
  node.parameters.push_back({"score", {hidden}});
  if (in.attributes.boolean_or("normalise", true)) {
    node.parameters.push_back({"score.bias", {hidden}});
    node.parameters.push_back({"score.scale", {1}});
  }
  add_product(node, queries, hidden, in.shape()[1]);
  add_product(node, keys, hidden, memory);
  const auto pairs = static_cast<double>(queries * keys);
  node.forward.push_back(traffic(2 * pairs * static_cast<double>(hidden)));  // the sums and their tanh
  node.forward.push_back(traffic(3 * pairs));
  node.forward.push_back(batched(1, queries, memory, keys));
  node.input_grad.push_back(batched(1, queries, keys, memory));
  node.input_grad.push_back(batched(1, keys, memory, queries));
  node.input_grad.push_back(traffic(3 * pairs * static_cast<double>(hidden)));
  node.saves_input = {true, true};
  node.own.push_back({.name = "tanh of the sums", .elements = queries * keys * hidden});
  node.own.push_back({.name = "probabilities", .elements = queries * keys});
  return node;
}

/// Multiplies [.., m, k] x [.., k, n] of two tensors of the sample; transposed, the second one is [.., n, k].
GraphNode matmul(const OperatorInputs& in) {
  const TensorShape &left = in.shape(0), &right = in.shape(1);
  const bool transpose = in.attributes.boolean_or("transpose", false);
  const std::size_t rank = left.size();
  const bool fits = rank >= 2 && right.size() == rank && std::equal(left.begin(), left.end() - 2, right.begin()) &&
                    left[rank - 1] == right[transpose ? rank - 1 : rank - 2];
  if (!fits) {
    in.fail(fmt::format("{} and {}{} have no product: the inner sizes must be equal, and those before", to_text(left),
                        to_text(right), transpose ? " transposed" : ""));
  }
  GraphNode node{.shape = left};
  node.shape.back() = right[transpose ? rank - 2 : rank - 1];
  const std::int64_t rows = left[rank - 2], columns = node.shape.back(), depth = left.back();
  const std::int64_t count = element_count(left) / (rows * depth);
  node.forward.push_back(batched(count, rows, columns, depth));
  node.input_grad.push_back(batched(count, rows, depth, columns));
  node.input_grad.push_back(batched(count, depth, columns, rows));
  node.saves_input = {true, true};
  return node;
}

}  // namespace

const std::vector<Operator>& sequence_operators() {
  static const std::vector<Operator> kOperators = {{"additive_attention", 2, 2, additive_attention},
                                                   {"attention", 1, 2, attention},
                                                   {"gru", 1, 1, gru},
                                                   {"lstm", 1, 1, lstm},
                                                   {"matmul", 2, 2, matmul},
                                                   {"rnn", 1, 1, rnn}};
  return kOperators;
}

}}  // namespace plumb::planner
