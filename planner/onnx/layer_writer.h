#pragma once
// Writes the nodes of a layer graph for those of an ONNX graph, and remembers which layer makes which tensor.
//
// ONNX's images are [N, C, H, W], those of a layer graph [H, W, C]. A tensor that a convolution, pooling or batch norm
// makes is such an image; views and products read it in ONNX's order, which costs nothing here.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "planner/onnx/shape_inference.h"

namespace plumb { inline namespace planner {

/// A tensor of the ONNX graph, and what makes it in the layer graph.
struct OnnxTensorPlace {
  OnnxValue value;
  std::string layer;                 ///< node of the layer graph; empty: the tensor is known before the training
  TensorShape shape;                 ///< of the layer's output, of one sample
  bool image = false;                ///< `shape` is [H, W, C] or [L, C] where ONNX has [N, C, ...]
  int readers = 0;                   ///< ONNX nodes and outputs that read it
  std::vector<std::string> weights;  ///< initializers of floating-point numbers from which it is computed
};

class LayerWriter {
 public:
  using Json = nlohmann::ordered_json;

  /// `batch` samples stand in the first axis of what depends on an input.
  LayerWriter(std::string file, std::int64_t batch, std::map<std::string, int> readers)
      : file_(std::move(file)), batch_(batch), readers_(std::move(readers)) {}

  void add_weight(const std::string& name, const OnnxTensor& weight);
  void add_input(const std::string& name, const OnnxValue& value);
  /// Adds a tensor that is known before the training, computed from those of `from`.
  void add_known(const std::string& name, const OnnxValue& value, const std::vector<const OnnxTensorPlace*>& from);

  bool is_read(const std::string& tensor) const { return readers_.contains(tensor); }
  const OnnxTensorPlace& tensor(const std::string& name) const { return tensors_.at(name); }

  /// Adds a layer with these attributes behind other layers, and returns its name.
  std::string add(const std::string& name, Json attributes, const std::vector<std::string>& inputs);

  /// Says that a layer makes the tensor `name`, in the layer's own shape.
  void bind(const std::string& name, const OnnxValue& value, const std::string& layer, const TensorShape& shape,
            bool image = false);

  /// Return the tensor under another shape, by a layer `name` that reshapes it where it is not so already.
  OnnxTensorPlace as_image(const OnnxTensorPlace& tensor, const std::string& name);
  OnnxTensorPlace reshaped(const OnnxTensorPlace& tensor, const TensorShape& shape, const std::string& name);

  /// Returns the shape of one sample of a tensor. Throws SpecError if its first axis does not hold the batch.
  TensorShape of_a_sample(const TensorShape& shape, const std::string& place) const;

  /// Returns the shapes of the weights of a tensor that no layer has yet, which `layer` then has.
  Json new_parameters(const OnnxTensorPlace& tensor, const std::string& layer);

  /// Returns the embedding of `rows` vectors, or the linear layer with as many outputs, that had the tensor's only weight
  /// of [rows, columns] before; empty: there is none.
  std::string tied_layer(const OnnxTensorPlace& tensor, std::int64_t rows, std::int64_t columns) const;

  /// Returns the attributes of the layer that makes the tensor, if it is of one of these operators and nothing else
  /// reads the tensor; null otherwise.
  Json* sole_producer(const OnnxTensorPlace& tensor, std::initializer_list<std::string_view> operators);

  /// Returns the layers that reach one of `ends`, in order.
  Json layers_before(const std::vector<std::string>& ends) const;
  std::size_t size() const { return layers_.size(); }

  const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::int64_t batch_;
  std::map<std::string, int> readers_;
  std::vector<Json> layers_;
  std::map<std::string, std::size_t> places_;  ///< [layer] its index
  std::map<std::string, OnnxTensorPlace> tensors_;
  std::map<std::string, TensorShape> weights_;
  std::map<std::string, std::string> owners_;  ///< [initializer] the first layer that has it
};

}}  // namespace plumb::planner
