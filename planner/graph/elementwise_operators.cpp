#include <algorithm>

#include <fmt/format.h>

#include "planner/graph/operators.h"

namespace plumb { inline namespace planner {
namespace {

constexpr int kMostInputs = 1 << 10;

/// A function of each number, whose backward reads its input or its output again.
GraphNode pointwise(const OperatorInputs& in, bool saves_input) {
  if (in.nodes[0]->tokens) in.fail("its input is tokens, not numbers: put an embedding before it");
  const auto area = static_cast<double>(element_count(in.shape()));
  GraphNode node{.shape = in.shape()};
  node.forward.push_back(traffic(2 * area));
  node.input_grad.push_back(traffic(3 * area));
  node.saves_input = {saves_input};
  node.saves_output = !saves_input;
  return node;
}
GraphNode of_its_input(const OperatorInputs& in) {
  return pointwise(in, true);
}
GraphNode of_its_output(const OperatorInputs& in) {
  return pointwise(in, false);
}

/// The mask is a hash of each element's place, so that none is kept.
GraphNode dropout(const OperatorInputs& in) {
  const double rate = in.attributes.non_negative_number("rate");
  if (rate >= 1) in.attributes.fail("rate", "nothing is left of a tensor: give a share below 1");
  GraphNode node = pointwise(in, true);
  node.saves_input = {false};
  if (rate == 0) node.forward.clear();
  node.input_grad = node.forward;
  return node;
}

void require_alike(const OperatorInputs& in) {
  for (std::size_t i = 1; i < in.nodes.size(); ++i) {
    if (in.shape(i) != in.shape()) {
      in.fail(
          fmt::format("its inputs are {} and {}: they must be alike; has a convolution on one side another stride or "
                      "number of filters?",
                      to_text(in.shape()), to_text(in.shape(i))));
    }
  }
}

GraphNode add(const OperatorInputs& in) {
  require_alike(in);
  GraphNode node{.shape = in.shape()};
  node.forward.push_back(
      traffic(static_cast<double>((in.nodes.size() + 1)) * static_cast<double>(element_count(in.shape()))));
  return node;
}

GraphNode multiply(const OperatorInputs& in) {
  require_alike(in);
  const auto area = static_cast<double>(element_count(in.shape()));
  GraphNode node{.shape = in.shape()};
  node.forward.push_back(traffic(3 * area));
  node.input_grad.push_back(traffic(5 * area));
  node.saves_input = {true, true};
  return node;
}

/// Joins its inputs along the channels.
GraphNode concat(const OperatorInputs& in) {
  GraphNode node{.shape = in.shape()};
  for (std::size_t i = 1; i < in.nodes.size(); ++i) {
    const TensorShape& other = in.shape(i);
    if (other.size() != node.shape.size() || !std::equal(other.begin(), other.end() - 1, node.shape.begin())) {
      in.fail(fmt::format("its inputs are {} and {}: all sizes but the channels must be alike", to_text(in.shape()),
                          to_text(other)));
    }
    node.shape.back() += other.back();
  }
  node.forward.push_back(traffic(2 * static_cast<double>(element_count(node.shape))));
  node.input_grad = node.forward;
  return node;
}

/// Takes `count` places of one axis from `from` on; an axis of size one is dropped.
GraphNode slice(const OperatorInputs& in) {
  const std::int64_t axis = in.attributes.non_negative_integer("axis"),
                     from = in.attributes.non_negative_integer_or("from", 0);
  const std::int64_t count = in.attributes.positive_integer_or("count", 1);
  GraphNode node{.shape = in.shape(), .tokens = in.nodes[0]->tokens};
  if (axis >= std::ssize(node.shape) || from + count > node.shape[static_cast<std::size_t>(axis)]) {
    in.fail(fmt::format("places {} to {} of axis {} are not in {}", from, from + count - 1, axis, to_text(in.shape())));
  }
  node.shape[static_cast<std::size_t>(axis)] = count;
  if (count == 1 && node.shape.size() > 1) node.shape.erase(node.shape.begin() + axis);
  node.forward.push_back(traffic(2 * static_cast<double>(element_count(node.shape))));
  node.input_grad.push_back(traffic(static_cast<double>(element_count(in.shape()))));
  return node;
}

GraphNode input(const OperatorInputs& in) {
  GraphNode node{.needs_grad = false};
  node.tokens = in.attributes.has("tokens");
  if (node.tokens) {
    node.shape = {in.attributes.positive_integer("tokens")};
    return node;
  }
  node.shape = in.attributes.integers("shape");
  constexpr std::int64_t kLargest = std::int64_t{1} << 32;
  const bool sane = std::ranges::all_of(node.shape, [](std::int64_t size) { return size >= 1 && size <= 1 << 24; });
  if (node.shape.empty() || node.shape.size() > 4 || !sane || element_count(node.shape) > kLargest) {
    in.attributes.fail("shape", "give one to four sizes above 0, the channels last");
  }
  if (node.shape.size() == 2 || node.shape.size() == 4) return node;  // the executor has no sequences, no volumes
  const bool image = node.shape.size() == 3;
  node.layer = image ? InputLayer{.height = node.shape[0], .width = node.shape[1], .channels = node.shape[2]}
                     : InputLayer{.width = node.shape[0]};
  return node;
}

}  // namespace

const std::vector<Operator>& elementwise_operators() {
  static const std::vector<Operator> kOperators = {
      {"add", 2, kMostInputs, add},     {"concat", 2, kMostInputs, concat},
      {"dropout", 1, 1, dropout},       {"gelu", 1, 1, of_its_input},
      {"input", 0, 0, input},           {"log_softmax", 1, 1, of_its_output},
      {"multiply", 2, 2, multiply},     {"relu", 1, 1, of_its_output},
      {"sigmoid", 1, 1, of_its_output}, {"slice", 1, 1, slice},
      {"softmax", 1, 1, of_its_output}, {"swish", 1, 1, of_its_input},
      {"tanh", 1, 1, of_its_output}};
  return kOperators;
}

}}  // namespace plumb::planner
