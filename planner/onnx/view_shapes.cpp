#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "planner/onnx/shape_rules.h"

namespace plumb { inline namespace planner {
namespace {

OnnxShapes flatten(const ShapeCall& call) {
  const TensorShape& shape = call.shape(0);
  const std::int64_t axis = call.node.integer_or("axis", 1);
  const auto front = static_cast<std::ptrdiff_t>(axis < 0 ? axis + std::ssize(shape) : axis);
  if (front < 0 || front > std::ssize(shape)) call.fail(fmt::format("axis {} is not in {}", axis, to_text(shape)));
  return one_shape(
      {element_count({shape.begin(), shape.begin() + front}), element_count({shape.begin() + front, shape.end()})});
}

OnnxShapes reshape(const ShapeCall& call) {
  const auto wanted = call.integers(1, "shape", std::nullopt);
  if (!wanted) return std::nullopt;
  TensorShape shape = *wanted;
  const TensorShape& from = call.shape(0);
  std::int64_t rest = element_count(from), open = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && call.node.integer_or("allowzero", 0) == 0 && i < from.size()) shape[i] = from[i];
    if (shape[i] == -1) {
      open = static_cast<std::int64_t>(i);
    } else if (shape[i] > 0 && rest % shape[i] == 0) {
      rest /= shape[i];
    } else {
      rest = 0;
    }
  }
  if (open >= 0) shape[static_cast<std::size_t>(open)] = rest;
  if (rest < 1 || element_count(shape) != element_count(from)) {
    call.fail(fmt::format("{} numbers do not fill {}", to_text(from), to_text(shape)));
  }
  return one_shape(shape);
}

OnnxShapes transpose(const ShapeCall& call) {
  const TensorShape& from = call.shape(0);
  std::vector<std::int64_t> order = call.node.integers_or("perm", {});
  if (order.empty())
    for (std::int64_t i = std::ssize(from) - 1; i >= 0; --i) order.push_back(i);
  TensorShape shape;
  for (const std::int64_t axis : order) shape.push_back(from[axis_of(axis, from.size(), call.place)]);
  if (shape.size() != from.size() || element_count(shape) != element_count(from))
    call.fail(fmt::format("\"perm\" is no order of the axes of {}", to_text(from)));
  return one_shape(shape);
}

OnnxShapes concat(const ShapeCall& call) {
  TensorShape shape = call.shape(0);
  const std::size_t axis = axis_of(call.node.integer_or("axis", 0), shape.size(), call.place);
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    TensorShape other = call.shape(i);
    if (other.size() != shape.size())
      call.fail(fmt::format("{} and {} cannot be joined", to_text(shape), to_text(other)));
    shape[axis] += other[axis];
    other[axis] = shape[axis];
    if (other != shape) call.fail(fmt::format("its inputs differ beside axis {}", axis));
  }
  return one_shape(shape);
}

OnnxShapes split(const ShapeCall& call) {
  const TensorShape& from = call.shape(0);
  const std::size_t axis = axis_of(call.node.integer_or("axis", 0), from.size(), call.place);
  const auto parts = static_cast<std::int64_t>(call.node.outputs.size());
  std::vector<std::int64_t> even;
  for (std::int64_t i = 0, size = (from[axis] + parts - 1) / parts; i < parts; ++i)
    even.push_back(std::clamp(from[axis] - i * size, std::int64_t{0}, size));
  const auto sizes = call.integers(1, "split", even);
  if (!sizes || std::ssize(*sizes) != parts) return std::nullopt;
  std::vector<TensorShape> shapes;
  for (const std::int64_t size : *sizes) {
    shapes.push_back(from);
    shapes.back()[axis] = size;
  }
  return shapes;
}

OnnxShapes gather(const ShapeCall& call) {
  const TensorShape &from = call.shape(0), &places = call.shape(1);
  const std::size_t axis = axis_of(call.node.integer_or("axis", 0), from.size(), call.place);
  TensorShape shape(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), places.begin(), places.end());
  shape.insert(shape.end(), from.begin() + static_cast<std::ptrdiff_t>(axis) + 1, from.end());
  return one_shape(shape);
}

OnnxShapes slice(const ShapeCall& call) {
  TensorShape shape = call.shape(0);
  const auto starts = call.integers(1, "starts", std::nullopt), ends = call.integers(2, "ends", std::nullopt);
  if (!starts || !ends || starts->size() != ends->size()) return std::nullopt;
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < std::ssize(*starts); ++i) all.push_back(i);
  const auto axes = call.integers(3, "axes", all);
  const auto steps = call.integers(4, "steps", std::vector<std::int64_t>(starts->size(), 1));
  if (!axes || !steps || axes->size() != starts->size() || steps->size() != starts->size()) return std::nullopt;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    std::int64_t& size = shape[axis_of((*axes)[i], shape.size(), call.place)];
    const std::int64_t step = (*steps)[i];
    if (step == 0) call.fail("a step of 0 takes nothing");
    const auto from_front = [&](std::int64_t at) { return at < 0 ? std::max(at + size, std::int64_t{-1}) : at; };
    const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    const std::int64_t begin = std::clamp(from_front((*starts)[i]), low, high);
    const std::int64_t end = (*ends)[i] < -size && step < 0 ? -1 : std::clamp(from_front((*ends)[i]), low, high);
    size = std::max<std::int64_t>(0, step > 0 ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step);
  }
  return one_shape(shape);
}

OnnxShapes squeeze(const ShapeCall& call) {
  const TensorShape& from = call.shape(0);
  std::vector<std::int64_t> ones;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] == 1) ones.push_back(static_cast<std::int64_t>(i));
  const auto axes = call.integers(1, "axes", ones);
  if (!axes) return std::nullopt;
  std::set<std::size_t> dropped;
  for (const std::int64_t axis : *axes) dropped.insert(axis_of(axis, from.size(), call.place));
  TensorShape shape;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (!dropped.contains(i)) shape.push_back(from[i]);
  return one_shape(shape);
}

OnnxShapes unsqueeze(const ShapeCall& call) {
  const auto axes = call.integers(1, "axes", std::nullopt);
  if (!axes) return std::nullopt;
  TensorShape shape = call.shape(0);
  const std::size_t rank = shape.size() + axes->size();
  std::set<std::size_t> added;
  for (const std::int64_t axis : *axes) added.insert(axis_of(axis, rank, call.place));
  for (const std::size_t axis : added) shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  return one_shape(shape);
}

OnnxShapes expand(const ShapeCall& call) {
  const auto wanted = call.integers(1, "shape", std::nullopt);
  if (!wanted) return std::nullopt;
  return one_shape(broadcast_shape(call.shape(0), *wanted, call.place));
}

OnnxShapes pad(const ShapeCall& call) {
  const auto pads = call.integers(1, "pads", std::nullopt);
  TensorShape shape = call.shape(0);
  if (!pads || pads->size() != 2 * shape.size() || call.given(3)) return std::nullopt;
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] += (*pads)[i] + (*pads)[i + shape.size()];
  return one_shape(shape);
}

OnnxShapes tile(const ShapeCall& call) {
  const auto times = call.integers(1, "repeats", std::nullopt);
  TensorShape shape = call.shape(0);
  if (!times || times->size() != shape.size()) return std::nullopt;
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] *= (*times)[i];
  return one_shape(shape);
}

}  // namespace

const ShapeRules& view_shapes() {
  static const ShapeRules kRules = {{"Flatten", flatten}, {"Reshape", reshape}, {"Transpose", transpose},
                                    {"Concat", concat},   {"Split", split},     {"Gather", gather},
                                    {"Slice", slice},     {"Squeeze", squeeze}, {"Unsqueeze", unsqueeze},
                                    {"Expand", expand},   {"Pad", pad},         {"Tile", tile}};
  return kRules;
}

}}  // namespace plumb::planner
