#pragma once
// An ONNX model as a layer graph (graph/layer_graph.h), which every verb then takes like any other model.
//
//   const OnnxModel imported = model_from_onnx(bytes, "model.onnx", {{"seq", 128}});
//
// A convolution, product, pooling, norm, embedding or activation becomes the layer graph's own operator. Every other
// operator becomes a `tensor_function` or `reshape`, which is priced by its bytes. Weights are what initializers hold;
// nodes that read weights alone are computed before the training, and cost nothing. Each output of floating-point
// numbers gets a loss, and each layer its backward: an ONNX file has the forward only.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/model_spec.h"

namespace plumb { inline namespace planner {

struct OnnxModel {
  ModelSpec model;
  std::vector<std::string> notes;  ///< sentences: operators that are not known, inputs and nodes that are left out
  std::string external;            ///< a file of weights that the model names; empty: none
};

/// Reads a model. The first size of an input is the batch, which counts as 1 where it has a name only; `sizes` are the
/// others that have a name only. Throws SpecError naming file, node and remedy: as parse_onnx() and infer_shapes(), a
/// size without a number, an operator whose output's shape is not known, an output that depends on no input.
OnnxModel model_from_onnx(std::string_view bytes, const std::string& file,
                          const std::map<std::string, std::int64_t>& sizes);

}}  // namespace plumb::planner
