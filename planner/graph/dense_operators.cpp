#include <utility>

#include <fmt/format.h>

#include "planner/graph/operators.h"

namespace plumb { inline namespace planner {
namespace {

Activation activation_of(const OperatorInputs& in) {
  if (!in.attributes.has("activation")) return Activation::kNone;
  const std::string name = in.attributes.choice("activation", {"none", "relu", "gelu"});
  return name == "relu" ? Activation::kRelu : name == "gelu" ? Activation::kGelu : Activation::kNone;
}

void require_rows(const OperatorInputs& in, std::string_view op) {
  const TensorShape& shape = in.shape();
  if (in.nodes[0]->tokens) in.fail(fmt::format("its input is tokens: put an embedding before {}", op));
  if (shape.empty() || shape.size() > 2) {
    in.fail(fmt::format("{} works on [channels] or [tokens, channels], and its input is {}: flatten it first", op,
                        to_text(shape)));
  }
}

std::int64_t rows_of(const TensorShape& shape) {
  return element_count(shape) / shape.back();
}

double dropout_of(const OperatorInputs& in, std::string_view key) {
  const double rate = in.attributes.has(key) ? in.attributes.non_negative_number(key) : 0;
  if (rate >= 1) in.attributes.fail(key, "nothing is left of a tensor: give a share below 1");
  return rate;
}

GraphNode linear(const OperatorInputs& in) {
  require_rows(in, "linear");
  const std::int64_t rows = rows_of(in.shape()), channels = in.shape().back();
  const std::int64_t out = in.attributes.positive_integer("out");
  const bool bias = in.attributes.boolean_or("bias", true);
  const Activation activation = activation_of(in);
  const double dropout = dropout_of(in, "dropout");
  GraphNode node{.shape = in.shape()};
  node.shape.back() = out;
  node.parameters.push_back({"weight", {out, channels}});
  if (bias) node.parameters.push_back({"bias", {out}});
  const bool tied = in.attributes.has("tied_to");
  if (rows == 1 && in.shape().size() == 1 && !tied) {
    node.layer = LinearLayer{.in = channels,
                             .out = out,
                             .bias = bias,
                             .activation = activation,
                             .dropout = dropout,
                             .input_grad = in.nodes[0]->needs_grad};
    return node;
  }
  add_product(node, rows, out, channels);
  const auto area = static_cast<double>(rows * out);
  if (bias) {
    node.forward.push_back(traffic(2 * area));
    node.weight_grad.push_back(traffic(area));
  }
  if (activation != Activation::kNone) {
    node.forward.push_back(traffic(2 * area));
    node.input_grad.insert(node.input_grad.begin(), traffic((activation == Activation::kGelu ? 3 : 2) * area));
    if (activation == Activation::kGelu) {
      node.own.push_back({.name = "before activation", .elements = rows * out, .needed_by_weight_grad = true});
    } else {
      node.own.push_back({.name = "relu mask", .elements = (rows * out + 31) / 32, .single_precision = true});
    }
  }
  if (dropout > 0) {
    node.forward.push_back(traffic(2 * area));
    node.input_grad.insert(node.input_grad.begin(), traffic(2 * area));
  }
  node.saves_input = {true};
  return node;
}

GraphNode mlp(const OperatorInputs& in) {
  require_rows(in, "mlp");
  if (in.shape().size() != 1) in.fail("mlp works on [channels]: of sequences write its linear layers one by one");
  const MlpLayer layer{.hidden = in.shape().back(), .ffn = in.attributes.positive_integer("ffn")};
  return {.shape = in.shape(), .layer = layer};
}

/// A router sends each token to `per_token` experts, each an MLP of its own (Shazeer et al. 2017, Lepikhin et al. 2020).
GraphNode experts(const OperatorInputs& in) {
  require_rows(in, "experts");
  const std::int64_t rows = rows_of(in.shape()), channels = in.shape().back();
  const std::int64_t count = in.attributes.positive_integer("count"), ffn = in.attributes.positive_integer("ffn");
  const std::int64_t routed = rows * in.attributes.positive_integer_or("per_token", 1);
  GraphNode node{.shape = in.shape()};
  node.parameters.push_back({"router", {count, channels}});
  node.parameters.push_back({"up.weight", {count, ffn, channels}});
  node.parameters.push_back({"down.weight", {count, channels, ffn}});
  add_product(node, rows, count, channels);
  node.forward.push_back(traffic(3 * static_cast<double>(rows * count)));
  for (const auto& [out, from] : {std::pair(ffn, channels), std::pair(channels, ffn)}) {
    add_product(node, routed, out, from);
    for (auto* pass : {&node.forward, &node.input_grad, &node.weight_grad})
      pass->back().fixed_elements *= static_cast<double>(count);
  }
  const auto hidden = static_cast<double>(routed * ffn);
  node.forward.push_back(traffic(2 * hidden));
  node.input_grad.push_back(traffic(3 * hidden));
  node.own.push_back({.name = "routed tokens", .elements = routed * channels, .needed_by_weight_grad = true});
  node.own.push_back({.name = "hidden of the experts", .elements = 2 * routed * ffn, .needed_by_weight_grad = true});
  node.saves_input = {true};
  return node;
}

/// The backward needs the statistics of each row, so the node keeps them.
GraphNode row_norm(const OperatorInputs& in, bool bias, int statistics) {
  const std::int64_t channels = in.shape().back();
  const auto area = static_cast<double>(element_count(in.shape()));
  GraphNode node{.shape = in.shape(), .parameters = {{"gain", {channels}}}};
  if (bias) node.parameters.push_back({"bias", {channels}});
  node.forward.push_back(traffic(2 * area));
  node.input_grad.push_back(traffic(3 * area));
  node.saves_input = {true};
  node.own.push_back(
      {.name = "norm statistics", .elements = statistics * rows_of(in.shape()), .single_precision = true});
  return node;
}

GraphNode layer_norm(const OperatorInputs& in) {
  return row_norm(in, in.attributes.boolean_or("bias", true), 2);
}
GraphNode rms_norm(const OperatorInputs& in) {
  return row_norm(in, false, 1);
}

GraphNode embedding(const OperatorInputs& in) {
  if (!in.nodes[0]->tokens) in.fail("an embedding reads tokens, and its input has numbers: give it an input of tokens");
  const std::int64_t vocab = in.attributes.positive_integer("vocab"), hidden = in.attributes.positive_integer("hidden");
  GraphNode node{.shape = in.shape(), .parameters = {{"table", {vocab, hidden}}}};
  node.shape.push_back(hidden);
  in.attributes.has("tied_to");
  const auto area = static_cast<double>(element_count(node.shape));
  node.forward.push_back(traffic(2 * area));
  node.weight_grad.push_back(traffic(3 * area));
  node.own.push_back({.name = "tokens", .elements = element_count(in.shape()), .single_precision = true});
  return node;
}

/// Adds a learned vector for each position.
GraphNode positions(const OperatorInputs& in) {
  require_rows(in, "positions");
  const std::int64_t rows = in.attributes.positive_integer("rows");
  if (in.shape().size() != 2) in.fail("positions are added to [tokens, channels]");
  const std::int64_t tokens = in.shape()[0], channels = in.shape()[1];
  if (tokens > rows) {
    in.fail(fmt::format("{} tokens have learned positions, and the sequence has {}: give sequences of {} or fewer",
                        rows, tokens, rows));
  }
  GraphNode node{.shape = in.shape(), .parameters = {{"table", {rows, channels}}}};
  const auto area = static_cast<double>(tokens * channels);
  node.forward.push_back(traffic(2 * area, area));
  node.weight_grad.push_back(traffic(area, 2 * area));
  return node;
}

GraphNode loss(const OperatorInputs& in) {
  const bool squared =
      in.attributes.has("kind") && in.attributes.choice("kind", {"cross_entropy", "squared_error"}) == "squared_error";
  const LossKind kind = squared ? LossKind::kSquaredError : LossKind::kCrossEntropy;
  const TensorShape& shape = in.shape();
  if (in.nodes[0]->tokens || shape.empty()) in.fail("a loss compares numbers, and its input has none");
  if (shape.size() == 1) return {.layer = LossLayer{.width = shape[0], .loss = kind}};
  GraphNode node;
  node.forward.push_back(traffic((squared ? 3 : 2) * static_cast<double>(element_count(shape))));
  node.saves_input = {true};
  return node;
}

}  // namespace

const std::vector<Operator>& dense_operators() {
  static const std::vector<Operator> kOperators = {
      {"embedding", 1, 1, embedding}, {"experts", 1, 1, experts},  {"layer_norm", 1, 1, layer_norm},
      {"linear", 1, 1, linear},       {"loss", 1, 1, loss},        {"mlp", 1, 1, mlp},
      {"positions", 1, 1, positions}, {"rms_norm", 1, 1, rms_norm}};
  return kOperators;
}

}}  // namespace plumb::planner
