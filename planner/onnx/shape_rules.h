#pragma once
// The rules of shapes by family of operators. A rule returns the shapes of a node's outputs; nothing where they depend on
// values that are not known.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/onnx/shape_inference.h"

namespace plumb { inline namespace planner {

using OnnxShapes = std::optional<std::vector<TensorShape>>;

inline OnnxShapes one_shape(TensorShape shape) {
  return std::vector<TensorShape>{std::move(shape)};
}

/// One node with its inputs.
struct ShapeCall {
  const OnnxNode& node;
  const std::vector<const OnnxValue*>& inputs;
  const std::string& place;

  bool given(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  std::size_t rank() const { return shape(0).size(); }

  /// Throws SpecError if the input is missing.
  const TensorShape& shape(std::size_t i) const;

  /// Returns whole numbers that newer files have as input i and older ones as an attribute; nothing where they are not
  /// known, and `fallback` where the node has none.
  std::optional<std::vector<std::int64_t>> integers(std::size_t i, const std::string& attribute,
                                                    const std::optional<std::vector<std::int64_t>>& fallback) const;

  /// Throws SpecError "PLACE: message: export the model again".
  [[noreturn]] void fail(const std::string& message) const;
};

using ShapeRules = std::map<std::string_view, OnnxShapes (*)(const ShapeCall&)>;

const ShapeRules& product_shapes();  ///< convolutions, pooling, products
const ShapeRules& view_shapes();     ///< operators that move numbers without computing

}}  // namespace plumb::planner
