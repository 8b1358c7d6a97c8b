#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/graph/operators.h"

namespace plumb { inline namespace planner {
namespace {

TensorShape shape_attribute(const OperatorInputs& in) {
  TensorShape shape = in.attributes.integers("shape");
  for (const std::int64_t size : shape)
    if (size < 1 || size > StrictObject::kLargestCount) in.attributes.fail("shape", "give sizes above 0");
  if (shape.empty()) in.attributes.fail("shape", "give one size or more");
  return shape;
}

/// Gives the same numbers another shape. Nothing is computed.
GraphNode reshape(const OperatorInputs& in) {
  GraphNode node{.shape = shape_attribute(in), .tokens = in.nodes[0]->tokens};
  if (element_count(node.shape) != element_count(in.shape()))
    in.attributes.fail("shape", fmt::format("{} does not hold the {} numbers of {}", to_text(node.shape),
                                            element_count(in.shape()), to_text(in.shape())));
  return node;
}

std::vector<ParameterTensor> parameters_of(const OperatorInputs& in) {
  std::vector<ParameterTensor> parameters;
  if (!in.attributes.has("parameters")) return parameters;
  const nlohmann::json& shapes = in.attributes.raw("parameters");
  if (!shapes.is_array()) in.attributes.fail("parameters", "an array of shapes is wanted");
  for (const nlohmann::json& shape : shapes) {
    ParameterTensor tensor{fmt::format("parameter.{}", parameters.size()), {}};
    for (const nlohmann::json& size : shape) {
      if (!size.is_number_integer() || size.get<std::int64_t>() < 1 || size.get<std::int64_t>() > 1 << 30)
        in.attributes.fail("parameters", "each shape has sizes above 0");
      tensor.shape.push_back(size.get<std::int64_t>());
    }
    parameters.push_back(std::move(tensor));
  }
  return parameters;
}

/// Any function that memory bounds: its forward reads its inputs and parameters and writes its output; its backward
/// reads the output's gradient and what is kept, and writes the gradients of the inputs.
GraphNode tensor_function(const OperatorInputs& in) {
  const std::string keeps =
      in.attributes.has("keeps") ? in.attributes.choice("keeps", {"inputs", "output", "nothing"}) : "inputs";
  GraphNode node{.shape = shape_attribute(in),
                 .tokens = in.attributes.boolean_or("integers", false),
                 .parameters = parameters_of(in)};
  double read = 0, weights = 0;
  for (std::size_t i = 0; i < in.nodes.size(); ++i) read += static_cast<double>(element_count(in.shape(i)));
  for (const ParameterTensor& tensor : node.parameters) weights += static_cast<double>(element_count(tensor));
  const auto written = static_cast<double>(element_count(node.shape));
  node.forward.push_back(traffic(read + written, weights));
  if (node.tokens) return node;
  const double kept = keeps == "inputs" ? read : keeps == "output" ? written : 0;
  node.input_grad.push_back(traffic(written + kept + read, weights));
  if (weights > 0) node.weight_grad.push_back(traffic(written, 2 * weights));
  node.saves_input.assign(in.nodes.size(), keeps == "inputs");
  node.saves_output = keeps == "output";
  return node;
}

}  // namespace

const std::vector<Operator>& tensor_operators() {
  static const std::vector<Operator> kOperators = {{"reshape", 1, 1, reshape},
                                                   {"tensor_function", 1, 1 << 10, tensor_function}};
  return kOperators;
}

}}  // namespace plumb::planner
