#pragma once
// One ONNX node as layers. Each family of operators has a function, which writes the first output, and returns false
// where the node is none of its own; any_function() takes every node.

#include <string>
#include <vector>

#include "planner/onnx/layer_writer.h"

namespace plumb { inline namespace planner {

struct OnnxStep {
  const OnnxNode& node;
  const std::vector<OnnxValue>& outputs;
  std::vector<const OnnxTensorPlace*> inputs;  ///< null where left out
  std::string place;                           ///< file and node

  const TensorShape& shape() const { return outputs.front().shape; }
  bool given(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  bool has_layer(std::size_t i) const { return given(i) && !inputs[i]->layer.empty(); }
  bool is_known(std::size_t i) const { return given(i) && inputs[i]->layer.empty(); }
};

bool image_layers(const OnnxStep& step, LayerWriter& writer);        ///< convolution, pooling, batch norm
bool product_layers(const OnnxStep& step, LayerWriter& writer);      ///< MatMul, Gemm, Einsum, a table of embeddings
bool elementwise_layers(const OnnxStep& step, LayerWriter& writer);  ///< activations, sums, row norms
bool recurrent_layers(const OnnxStep& step, LayerWriter& writer);    ///< LSTM, GRU, RNN, with all of their outputs
bool view_layers(const OnnxStep& step, LayerWriter& writer);         ///< Reshape and its like

/// Writes the outputs from `first` on as functions that memory bounds; of those behind the first, what is read.
void any_function(const OnnxStep& step, LayerWriter& writer, std::size_t first);

}}  // namespace plumb::planner
