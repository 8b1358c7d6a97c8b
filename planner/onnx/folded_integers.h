#pragma once
// The whole numbers that a node computes from whole numbers that are known before the model runs.

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/onnx/shape_inference.h"

namespace plumb { inline namespace planner {

/// Returns the values of the node's first output, whose shape is `output`; nothing where they are not known, or are more
/// than 2^12.
std::optional<std::vector<std::int64_t>> folded_integers(const OnnxNode& node,
                                                         const std::vector<const OnnxValue*>& inputs,
                                                         const TensorShape& output);

}}  // namespace plumb::planner
