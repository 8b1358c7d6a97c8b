#include "planner/graph/operators.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/nearest_name.h"

namespace plumb { inline namespace planner {
namespace {

const std::vector<Operator>& all_operators() {
  static const std::vector<Operator> kAll = [] {
    std::vector<Operator> all;
    for (const auto* family :
         {&image_operators(), &dense_operators(), &sequence_operators(), &elementwise_operators(), &tensor_operators()})
      all.insert(all.end(), family->begin(), family->end());
    std::ranges::sort(all, {}, &Operator::name);
    return all;
  }();
  return kAll;
}

}  // namespace

void OperatorInputs::fail(const std::string& message) const {
  throw SpecError(fmt::format("{}: {}", attributes.place(), message));
}

const std::vector<std::string>& operator_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Operator& known : all_operators()) names.emplace_back(known.name);
    return names;
  }();
  return kNames;
}

GraphNode make_node(const std::string& op, const OperatorInputs& inputs) {
  const auto known = std::ranges::find(all_operators(), op, &Operator::name);
  if (known == all_operators().end()) {
    inputs.fail(fmt::format("unknown operator \"{}\": {}", op, did_you_mean(op, operator_names())));
  }
  const auto given = static_cast<int>(inputs.nodes.size());
  if (given < known->least_inputs || given > known->most_inputs) {
    const std::string wanted = known->least_inputs == known->most_inputs
                                   ? fmt::format("{}", known->least_inputs)
                                   : fmt::format("at least {}", known->least_inputs);
    inputs.fail(fmt::format("{} takes {} inputs, and {} are given: name them in \"inputs\"", op, wanted, given));
  }
  GraphNode node = known->make(inputs);
  node.op = op;
  node.saves_input.resize(inputs.nodes.size(), false);
  return node;
}

void add_product(GraphNode& node, std::int64_t rows, std::int64_t out, std::int64_t in) {
  const GraphKernel product{.kind = GraphKernel::Kind::kProduct,
                            .rows = rows,
                            .columns = out,
                            .depth = in,
                            .elements = static_cast<double>(rows * (in + out)),
                            .fixed_elements = static_cast<double>(in * out)};
  node.forward.push_back(product);
  GraphKernel input_grad = product;
  std::swap(input_grad.columns, input_grad.depth);
  node.input_grad.push_back(input_grad);
  node.weight_grad.push_back({.kind = GraphKernel::Kind::kProduct,
                              .rows = out,
                              .columns = in,
                              .depth = rows,
                              .grows = GraphKernel::Grows::kDepth,
                              .elements = product.elements,
                              .fixed_elements = 2 * product.fixed_elements});
  node.has_products = true;
}

GraphKernel traffic(double elements, double fixed_elements) {
  return {.elements = elements, .fixed_elements = fixed_elements};
}

}}  // namespace plumb::planner
