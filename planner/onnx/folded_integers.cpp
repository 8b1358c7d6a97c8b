#include "planner/onnx/folded_integers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace plumb { inline namespace planner {
namespace {

using KnownIntegers = std::vector<std::int64_t>;
using Inputs = std::vector<const OnnxValue*>;

/// Returns the values of input i; nothing where they are not known.
const KnownIntegers* known(const Inputs& inputs, std::size_t i) {
  return i < inputs.size() && inputs[i] != nullptr && inputs[i]->integers ? &*inputs[i]->integers : nullptr;
}

/// Returns f of the values of two inputs, place by place; one of them may be a single number.
template <typename Function>
std::optional<KnownIntegers> by_place(const Inputs& inputs, std::size_t first, Function f) {
  const KnownIntegers *left = known(inputs, first), *right = known(inputs, first + 1);
  if (left == nullptr || right == nullptr || left->empty() || right->empty()) return std::nullopt;
  const std::size_t count = std::max(left->size(), right->size());
  if ((left->size() != 1 && left->size() != count) || (right->size() != 1 && right->size() != count))
    return std::nullopt;
  KnownIntegers values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = f((*left)[left->size() == 1 ? 0 : i], (*right)[right->size() == 1 ? 0 : i]);
  return values;
}

std::optional<KnownIntegers> gathered(const Inputs& inputs) {
  const KnownIntegers *from = known(inputs, 0), *places = known(inputs, 1);
  if (from == nullptr || places == nullptr || inputs[0]->shape.size() != 1) return std::nullopt;
  KnownIntegers values;
  for (const std::int64_t place : *places) {
    const std::int64_t at = place < 0 ? place + std::ssize(*from) : place;
    if (at < 0 || at >= std::ssize(*from)) return std::nullopt;
    values.push_back((*from)[static_cast<std::size_t>(at)]);
  }
  return values;
}

std::optional<KnownIntegers> joined(const Inputs& inputs) {
  KnownIntegers values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const KnownIntegers* part = known(inputs, i);
    if (part == nullptr || inputs[i]->shape.size() > 1) return std::nullopt;
    values.insert(values.end(), part->begin(), part->end());
  }
  return values;
}

std::optional<KnownIntegers> sliced(const OnnxNode& node, const Inputs& inputs) {
  const KnownIntegers* from = known(inputs, 0);
  if (from == nullptr || inputs[0]->shape.size() != 1) return std::nullopt;
  KnownIntegers starts = node.integers_or("starts", {}), ends = node.integers_or("ends", {});
  if (const KnownIntegers* given = known(inputs, 1)) starts = *given;
  if (const KnownIntegers* given = known(inputs, 2)) ends = *given;
  const KnownIntegers* steps = known(inputs, 4);
  if (starts.size() != 1 || ends.size() != 1 || (steps != nullptr && *steps != KnownIntegers{1})) return std::nullopt;
  const std::int64_t size = std::ssize(*from);
  const auto place = [&](std::int64_t at) { return std::clamp(at < 0 ? at + size : at, std::int64_t{0}, size); };
  const std::int64_t begin = place(starts[0]), end = std::max(begin, place(ends[0]));
  return KnownIntegers(from->begin() + begin, from->begin() + end);
}

std::optional<KnownIntegers> range(const Inputs& inputs, std::int64_t count) {
  const KnownIntegers *start = known(inputs, 0), *step = known(inputs, 2);
  if (start == nullptr || step == nullptr || start->size() != 1 || step->size() != 1) return std::nullopt;
  KnownIntegers values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (*start)[0] + static_cast<std::int64_t>(i) * (*step)[0];
  return values;
}

std::optional<KnownIntegers> chosen(const Inputs& inputs, std::size_t count) {
  const KnownIntegers *choice = known(inputs, 0), *yes = known(inputs, 1), *no = known(inputs, 2);
  if (choice == nullptr || yes == nullptr || no == nullptr) return std::nullopt;
  for (const KnownIntegers* part : {choice, yes, no})
    if (part->size() != 1 && part->size() != count) return std::nullopt;
  KnownIntegers values(count);
  const auto at = [](const KnownIntegers& from, std::size_t i) { return from[from.size() == 1 ? 0 : i]; };
  for (std::size_t i = 0; i < count; ++i) values[i] = at(*choice, i) != 0 ? at(*yes, i) : at(*no, i);
  return values;
}

/// Rounds towards zero, as ONNX divides whole numbers.
std::int64_t quotient(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : a / b;
}

}  // namespace

std::optional<KnownIntegers> folded_integers(const OnnxNode& node, const Inputs& inputs, const TensorShape& output) {
  constexpr std::int64_t kMostFolded = 1 << 12;
  const std::int64_t count = element_count(output);
  if (count > kMostFolded) return std::nullopt;
  if (node.op == "Shape") {
    const TensorShape& shape = inputs[0]->shape;
    const std::int64_t rank = std::ssize(shape), start = node.integer_or("start", 0);
    const std::int64_t begin = std::clamp(start < 0 ? start + rank : start, std::int64_t{0}, rank);
    return KnownIntegers(shape.begin() + begin, shape.begin() + begin + count);
  }
  if (node.op == "Size") return KnownIntegers{element_count(inputs[0]->shape)};
  if (node.op == "Constant") {
    if (const auto value = node.attributes.find("value_ints"); value != node.attributes.end())
      return value->second.integers;
    if (node.attributes.contains("value_int")) return KnownIntegers{node.integer_or("value_int", 0)};
    const auto value = node.attributes.find("value");
    if (value == node.attributes.end() || value->second.tensors.empty()) return std::nullopt;
    const OnnxTensor& tensor = value->second.tensors.front();
    if (tensor.numbers || std::ssize(tensor.integers) != count) return std::nullopt;
    return tensor.integers;
  }
  if (node.op == "ConstantOfShape") {
    const auto value = node.attributes.find("value");
    if (value == node.attributes.end() || value->second.tensors.empty()) return std::nullopt;
    const OnnxTensor& tensor = value->second.tensors.front();
    if (tensor.integers.size() != 1) return std::nullopt;
    return KnownIntegers(static_cast<std::size_t>(count), tensor.integers[0]);
  }
  if (node.op == "Gather") return gathered(inputs);
  if (node.op == "Concat") return joined(inputs);
  if (node.op == "Slice") return sliced(node, inputs);
  if (node.op == "Range") return range(inputs, count);
  if (node.op == "Where") return chosen(inputs, static_cast<std::size_t>(count));
  if (node.op == "Add") return by_place(inputs, 0, std::plus<>());
  if (node.op == "Sub") return by_place(inputs, 0, std::minus<>());
  if (node.op == "Mul") return by_place(inputs, 0, std::multiplies<>());
  if (node.op == "Div") return by_place(inputs, 0, quotient);
  if (node.op == "Equal") return by_place(inputs, 0, std::equal_to<>());
  const KnownIntegers* only = known(inputs, 0);
  if (only == nullptr) return std::nullopt;
  if (node.op == "ReduceProd" && count == 1)
    return KnownIntegers{std::accumulate(only->begin(), only->end(), std::int64_t{1}, std::multiplies<>())};
  constexpr std::string_view kViews[] = {"Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Flatten"};
  if (std::ranges::find(kViews, node.op) != std::end(kViews)) return *only;
  if (node.op == "Expand" && only->size() == 1) return KnownIntegers(static_cast<std::size_t>(count), only->front());
  return std::nullopt;
}

}}  // namespace plumb::planner
