#include "planner/onnx/shape_inference.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "planner/onnx/folded_integers.h"
#include "planner/onnx/shape_rules.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

/// The first output is like the first input; that of a dropout has a mask beside it.
OnnxShapes same(const ShapeCall& call) {
  return std::vector<TensorShape>(call.node.op == "Dropout" ? 2 : 1, call.shape(0));
}

OnnxShapes like_second(const ShapeCall& call) {
  return one_shape(call.shape(1));
}

OnnxShapes single(const ShapeCall&) {
  return one_shape({});
}

OnnxShapes broadcast(const ShapeCall& call) {
  TensorShape shape = call.shape(0);
  for (std::size_t i = 1; i < call.inputs.size(); ++i) shape = broadcast_shape(shape, call.shape(i), call.place);
  return one_shape(shape);
}

OnnxShapes shape_itself(const ShapeCall& call) {
  const std::int64_t rank = std::ssize(call.shape(0));
  const auto place = [&](std::int64_t at) { return std::clamp(at < 0 ? at + rank : at, std::int64_t{0}, rank); };
  const std::int64_t begin = place(call.node.integer_or("start", 0)), end = place(call.node.integer_or("end", rank));
  return one_shape({std::max<std::int64_t>(0, end - begin)});
}

OnnxShapes constant(const ShapeCall& call) {
  if (const auto value = call.node.attributes.find("value"); value != call.node.attributes.end())
    if (!value->second.tensors.empty()) return one_shape(value->second.tensors.front().shape);
  if (const auto value = call.node.attributes.find("value_ints"); value != call.node.attributes.end())
    return one_shape({std::ssize(value->second.integers)});
  if (call.node.attributes.contains("value_int") || call.node.attributes.contains("value_float")) return one_shape({});
  return std::nullopt;
}

OnnxShapes constant_of_shape(const ShapeCall& call) {
  if (!call.given(0) || !call.inputs[0]->integers) return std::nullopt;
  return one_shape(*call.inputs[0]->integers);
}

OnnxShapes range(const ShapeCall& call) {
  for (std::size_t i = 0; i < 3; ++i)
    if (!call.given(i) || !call.inputs[i]->integers || call.inputs[i]->integers->size() != 1) return std::nullopt;
  const std::int64_t start = call.inputs[0]->integers->front(), end = call.inputs[1]->integers->front(),
                     step = call.inputs[2]->integers->front();
  if (step == 0) return std::nullopt;
  const std::int64_t room = step > 0 ? end - start + step - 1 : start - end - step - 1;
  return one_shape({std::max<std::int64_t>(0, room / (step > 0 ? step : -step))});
}

OnnxShapes reduce(const ShapeCall& call) {
  const TensorShape& from = call.shape(0);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < std::ssize(from); ++i) all.push_back(i);
  const bool argument = call.node.op == "ArgMax" || call.node.op == "ArgMin";
  auto axes = argument ? std::optional(std::vector<std::int64_t>{call.node.integer_or("axis", 0)})
                       : call.integers(1, "axes", all);
  if (!axes) return std::nullopt;
  std::set<std::size_t> reduced;
  for (const std::int64_t axis : *axes) reduced.insert(axis_of(axis, from.size(), call.place));
  const bool keeps = call.node.integer_or("keepdims", 1) != 0;
  TensorShape shape;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!reduced.contains(i)) {
      shape.push_back(from[i]);
    } else if (keeps) {
      shape.push_back(1);
    }
  }
  return one_shape(shape);
}

const ShapeRules& rules() {
  static const auto kRules = [] {
    ShapeRules rules = {
        {"Shape", shape_itself}, {"Constant", constant},          {"Range", range},
        {"Size", single},        {"GatherElements", like_second}, {"ConstantOfShape", constant_of_shape}};
    for (const ShapeRules* family : {&product_shapes(), &view_shapes()}) rules.insert(family->begin(), family->end());
    for (const std::string_view op : {"Add",   "Sub",  "Mul",         "Div",     "Pow",
                                      "Min",   "Max",  "Sum",         "Mean",    "Where",
                                      "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual",
                                      "And",   "Or",   "Xor",         "Mod",     "PRelu"})
      rules[op] = broadcast;
    for (const std::string_view op : {"Relu",
                                      "PRelu",
                                      "Sinh",
                                      "Cosh",
                                      "Tan",
                                      "Asin",
                                      "Acos",
                                      "Atan",
                                      "Asinh",
                                      "Acosh",
                                      "Atanh",
                                      "Hardmax",
                                      "Shrink",
                                      "IsInf",
                                      "Sigmoid",
                                      "Tanh",
                                      "Softmax",
                                      "LogSoftmax",
                                      "Gelu",
                                      "Elu",
                                      "Selu",
                                      "Celu",
                                      "Erf",
                                      "Exp",
                                      "Log",
                                      "Sqrt",
                                      "Reciprocal",
                                      "Abs",
                                      "Neg",
                                      "Floor",
                                      "Ceil",
                                      "Round",
                                      "Sign",
                                      "Sin",
                                      "Cos",
                                      "Not",
                                      "Cast",
                                      "Softplus",
                                      "Softsign",
                                      "LeakyRelu",
                                      "HardSigmoid",
                                      "HardSwish",
                                      "Mish",
                                      "Clip",
                                      "Identity",
                                      "Dropout",
                                      "CumSum",
                                      "Trilu",
                                      "IsNaN",
                                      "LRN",
                                      "BatchNormalization",
                                      "InstanceNormalization",
                                      "GroupNormalization",
                                      "LayerNormalization",
                                      "RMSNormalization",
                                      "LpNormalization",
                                      "MeanVarianceNormalization",
                                      "ThresholdedRelu"})
      rules[op] = same;
    for (const std::string_view op :
         {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceLogSum", "ReduceL2",
          "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin"})
      rules[op] = reduce;
    return rules;
  }();
  return kRules;
}

/// Returns true if the outputs are floating point.
bool makes_numbers(const ShapeCall& call) {
  constexpr std::string_view kWhole[] = {"Shape",          "Equal",  "Less",  "LessOrEqual", "Greater",
                                         "GreaterOrEqual", "And",    "Or",    "Xor",         "Not",
                                         "ArgMax",         "ArgMin", "IsNaN", "IsInf",       "Size"};
  if (std::ranges::find(kWhole, call.node.op) != std::end(kWhole)) return false;
  if (call.node.op == "Constant" || call.node.op == "ConstantOfShape") {
    const auto value = call.node.attributes.find("value");
    if (value != call.node.attributes.end() && !value->second.tensors.empty())
      return value->second.tensors.front().numbers;
    return !call.node.attributes.contains("value_int") && !call.node.attributes.contains("value_ints");
  }
  if (call.node.op == "Cast") {
    const std::int64_t to = call.node.integer_or("to", 1);
    return to == 1 || to == 10 || to == 11 || to == 16;  // float, half, double, bfloat16
  }
  if (call.node.op == "Where") return call.given(1) && call.inputs[1]->numbers;
  return call.given(0) && call.inputs[0]->numbers;
}

}  // namespace

void ShapeCall::fail(const std::string& message) const {
  throw SpecError(fmt::format("{}: {}: export the model again", place, message));
}

const TensorShape& ShapeCall::shape(std::size_t i) const {
  if (!given(i)) fail(fmt::format("its input {} is missing", i + 1));
  return inputs[i]->shape;
}

std::optional<std::vector<std::int64_t>> ShapeCall::integers(
    std::size_t i, const std::string& attribute, const std::optional<std::vector<std::int64_t>>& fallback) const {
  if (given(i)) return inputs[i]->integers;
  const auto found = node.attributes.find(attribute);
  return found == node.attributes.end() ? fallback : found->second.integers;
}

std::size_t axis_of(std::int64_t axis, std::size_t rank, const std::string& place) {
  const std::int64_t at = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
  if (at < 0 || at >= static_cast<std::int64_t>(rank))
    throw SpecError(fmt::format("{}: there is no axis {} of {}: export the model again", place, axis, rank));
  return static_cast<std::size_t>(at);
}

TensorShape broadcast_shape(const TensorShape& left, const TensorShape& right, const std::string& place) {
  TensorShape shape(std::max(left.size(), right.size()), 1);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t a = i < left.size() ? left[left.size() - 1 - i] : 1;
    const std::int64_t b = i < right.size() ? right[right.size() - 1 - i] : 1;
    if (a != b && a != 1 && b != 1) {
      throw SpecError(
          fmt::format("{}: {} and {} do not fit together: export the model with the batch that its shapes are for",
                      place, to_text(left), to_text(right)));
    }
    shape[shape.size() - 1 - i] = a == 1 ? b : a;
  }
  return shape;
}

std::optional<std::vector<OnnxValue>> infer_shapes(const OnnxNode& node, const std::vector<const OnnxValue*>& inputs,
                                                   const std::string& place) {
  const ShapeCall call{.node = node, .inputs = inputs, .place = place};
  const auto rule = rules().find(node.op);
  if (rule == rules().end()) return std::nullopt;
  const OnnxShapes shapes = rule->second(call);
  if (!shapes) return std::nullopt;
  std::vector<OnnxValue> values;
  for (const TensorShape& shape : *shapes) values.push_back({.shape = shape, .numbers = makes_numbers(call)});
  // The second output of these is a mask, or the places of the largest numbers.
  if (values.size() > 1 && (node.op == "Dropout" || node.op == "MaxPool")) values[1].numbers = false;
  if (!values.empty() && !values.front().numbers)
    values.front().integers = folded_integers(node, inputs, values.front().shape);
  return values;
}

}}  // namespace plumb::planner
