#pragma once
// The shapes of an ONNX operator's outputs, and the whole numbers that are known before the model runs: shapes are
// themselves computed by nodes (Shape, Gather, Concat, Reshape).
//
// The rules are those of ONNX's operator specification (github.com/onnx/onnx, docs/Operators.md).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/onnx/onnx_file.h"

namespace plumb { inline namespace planner {

/// A tensor as far as it is known before the model runs.
struct OnnxValue {
  TensorShape shape;
  bool numbers = true;                                ///< floating point
  std::optional<std::vector<std::int64_t>> integers;  ///< its values in row-major order, where they are known
  double first = 0;  ///< its first value, where it is a constant of floating-point numbers
};

/// Returns the outputs of a node, or the first of them where the others are not known (such as the statistics of a norm);
/// inputs are null where they are left out. Returns nothing for an operator that is not
/// known, or whose shape depends on values that are not. Throws SpecError "PLACE: ..." where shapes do not fit.
std::optional<std::vector<OnnxValue>> infer_shapes(const OnnxNode& node, const std::vector<const OnnxValue*>& inputs,
                                                   const std::string& place);

/// Returns the shape in which tensors of these shapes meet (NumPy's broadcasting). Throws as infer_shapes().
TensorShape broadcast_shape(const TensorShape& left, const TensorShape& right, const std::string& place);

/// Returns an axis counted from the front. Throws as infer_shapes().
std::size_t axis_of(std::int64_t axis, std::size_t rank, const std::string& place);

}}  // namespace plumb::planner
