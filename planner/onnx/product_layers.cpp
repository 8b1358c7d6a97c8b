#include <algorithm>

#include "planner/onnx/einsum.h"
#include "planner/onnx/onnx_step.h"

namespace plumb { inline namespace planner {
namespace {

/// Products of matrices: `count` times [rows, depth] x [depth, columns].
struct Product {
  std::int64_t count = 1, rows = 1, columns = 1, depth = 1;
};

/// Writes x W, where W is known before the training.
void times_weights(const OnnxStep& step, LayerWriter& writer, const OnnxTensorPlace& x, const OnnxTensorPlace& weight,
                   const Product& product, bool bias) {
  const std::string& name = step.node.name;
  const std::int64_t rows = element_count(x.shape) / product.depth;
  const bool fits = !x.image && x.shape.size() <= 2 && x.shape.back() == product.depth;
  const OnnxTensorPlace flat = fits ? x : writer.reshaped(x, {rows, product.depth}, name + ".rows");
  LayerWriter::Json layer = {{"op", "linear"}, {"out", product.columns}, {"bias", bias}};
  const std::string tied = writer.tied_layer(weight, product.columns, product.depth);
  if (!tied.empty()) layer["tied_to"] = tied;
  OnnxTensorPlace made{.value = step.outputs[0], .shape = flat.shape};
  made.layer = writer.add(name, std::move(layer), {flat.layer});
  made.shape.back() = product.columns;
  writer.new_parameters(weight, made.layer);
  const TensorShape wanted = writer.of_a_sample(step.shape(), step.place);
  const OnnxTensorPlace output = writer.reshaped(made, wanted, name + ".shape");
  writer.bind(step.node.outputs[0], step.outputs[0], output.layer, output.shape);
}

/// Returns a tensor as `count` matrices; one that has fewer is repeated, as broadcasting does.
OnnxTensorPlace as_matrices(const OnnxTensorPlace& tensor, const TensorShape& shape, const std::string& name,
                            LayerWriter& writer) {
  if (element_count(tensor.shape) == element_count(shape)) return writer.reshaped(tensor, shape, name);
  OnnxTensorPlace repeated = tensor;
  repeated.layer =
      writer.add(name, {{"op", "tensor_function"}, {"shape", shape}, {"keeps", "nothing"}}, {tensor.layer});
  repeated.shape = shape;
  return repeated;
}

void times_tensor(const OnnxStep& step, LayerWriter& writer, const Product& product, bool transpose) {
  const std::string& name = step.node.name;
  const TensorShape wanted = writer.of_a_sample(step.shape(), step.place);
  const TensorShape columns = transpose ? TensorShape{product.count, product.columns, product.depth}
                                        : TensorShape{product.count, product.depth, product.columns};
  const auto plain = [](TensorShape shape) {
    if (shape.front() == 1) shape.erase(shape.begin());
    return shape;
  };
  const OnnxTensorPlace left =
      as_matrices(*step.inputs[0], plain({product.count, product.rows, product.depth}), name + ".left", writer);
  const OnnxTensorPlace right = as_matrices(*step.inputs[1], plain(columns), name + ".right", writer);
  OnnxTensorPlace made{.value = step.outputs[0], .shape = plain({product.count, product.rows, product.columns})};
  made.layer = writer.add(name, {{"op", "matmul"}, {"transpose", transpose}}, {left.layer, right.layer});
  const OnnxTensorPlace output = writer.reshaped(made, wanted, name + ".shape");
  writer.bind(step.node.outputs[0], step.outputs[0], output.layer, output.shape);
}

std::int64_t samples_of(const OnnxStep& step, LayerWriter& writer) {
  return element_count(step.shape()) / element_count(writer.of_a_sample(step.shape(), step.place));
}

bool matmul(const OnnxStep& step, LayerWriter& writer) {
  const TensorShape &left = step.inputs[0]->value.shape, &right = step.inputs[1]->value.shape;
  if (left.size() < 2 || right.size() < 2) return false;
  Product product{.rows = left[left.size() - 2], .columns = right.back(), .depth = left.back()};
  if (step.has_layer(0) && step.has_layer(1)) {
    product.count = element_count(step.shape()) / product.rows / product.columns / samples_of(step, writer);
    if (product.count < 1) return false;
    times_tensor(step, writer, product, false);
    return true;
  }
  if (step.has_layer(0) && right.size() == 2) {
    times_weights(step, writer, *step.inputs[0], *step.inputs[1], product, false);
    return true;
  }
  if (step.has_layer(1) && left.size() == 2) {  // W x, the transposed product
    product.columns = left[0];
    times_weights(step, writer, *step.inputs[1], *step.inputs[0], product, false);
    return true;
  }
  return false;
}

bool gemm(const OnnxStep& step, LayerWriter& writer) {
  const TensorShape &left = step.inputs[0]->value.shape, &right = step.inputs[1]->value.shape;
  const bool turned = step.node.integer_or("transB", 0) != 0;
  if (step.node.integer_or("transA", 0) != 0 || !step.has_layer(0)) return false;
  const Product product{.columns = right[turned ? 0 : 1], .depth = left[1]};
  if (!step.is_known(1) || (step.given(2) && !step.is_known(2))) return false;
  times_weights(step, writer, *step.inputs[0], *step.inputs[1], product, step.given(2));
  return true;
}

/// Labels of both tensors count products where the output has them, and are summed where it has not.
bool einsum(const OnnxStep& step, LayerWriter& writer) {
  if (step.inputs.size() != 2) return false;
  const TensorShape &left = step.inputs[0]->value.shape, &right = step.inputs[1]->value.shape;
  const auto labels = einsum_of(step.node.text_or("equation", ""), left, right, step.place);
  if (!labels) return false;
  Product product;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const bool both = labels->right.find(labels->left[i]) != std::string::npos;
    const bool stays = labels->output.find(labels->left[i]) != std::string::npos;
    (both ? stays ? product.count : product.depth : product.rows) *= left[i];
  }
  for (std::size_t i = 0; i < right.size(); ++i)
    if (labels->left.find(labels->right[i]) == std::string::npos) product.columns *= right[i];
  if (step.has_layer(0) && step.has_layer(1)) {
    const std::int64_t samples = samples_of(step, writer);
    if (product.count % samples != 0) return false;
    product.count /= samples;
    times_tensor(step, writer, product, false);
    return true;
  }
  const bool weight_first = step.has_layer(1);
  if (product.count != 1) return false;
  if (weight_first) std::swap(product.rows, product.columns);
  times_weights(step, writer, *step.inputs[weight_first ? 1 : 0], *step.inputs[weight_first ? 0 : 1], product, false);
  return true;
}

/// Rows of a table that the model learns.
bool embedding(const OnnxStep& step, LayerWriter& writer) {
  if (!step.is_known(0) || !step.has_layer(1)) return false;
  const OnnxTensorPlace& table = *step.inputs[0];
  const bool learned = table.value.numbers && table.value.shape.size() == 2 && table.weights.size() == 1 &&
                       step.node.integer_or("axis", 0) == 0;
  if (!learned) return false;
  const OnnxTensorPlace tokens =
      writer.reshaped(*step.inputs[1], {element_count(step.inputs[1]->shape)}, step.node.name + ".tokens");
  LayerWriter::Json layer = {{"op", "embedding"}, {"vocab", table.value.shape[0]}, {"hidden", table.value.shape[1]}};
  OnnxTensorPlace made{.value = step.outputs[0], .shape = {tokens.shape[0], table.value.shape[1]}};
  made.layer = writer.add(step.node.name, std::move(layer), {tokens.layer});
  writer.new_parameters(table, made.layer);
  const OnnxTensorPlace output =
      writer.reshaped(made, writer.of_a_sample(step.shape(), step.place), step.node.name + ".shape");
  writer.bind(step.node.outputs[0], step.outputs[0], output.layer, output.shape);
  return true;
}

}  // namespace

bool product_layers(const OnnxStep& step, LayerWriter& writer) {
  if (step.node.op == "MatMul") return matmul(step, writer);
  if (step.node.op == "Gemm") return gemm(step, writer);
  if (step.node.op == "Einsum") return einsum(step, writer);
  if (step.node.op == "Gather") return embedding(step, writer);
  return false;
}

}}  // namespace plumb::planner
