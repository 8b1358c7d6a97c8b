#include <fmt/format.h>

#include "planner/onnx/einsum.h"
#include "planner/onnx/onnx_window.h"
#include "planner/onnx/shape_rules.h"

namespace plumb { inline namespace planner {
namespace {

void require_rank(const ShapeCall& call, std::size_t least, const char* what) {
  if (call.rank() < least) call.fail(fmt::format("its input {} is no {}", to_text(call.shape(0)), what));
}

OnnxShapes convolution(const ShapeCall& call) {
  require_rank(call, 3, "image");
  const TensorShape &image = call.shape(0), &weight = call.shape(1);
  if (weight.size() != image.size() || weight[1] * call.node.integer_or("group", 1) != image[1]) {
    call.fail(fmt::format("weights {} do not fit the image {}", to_text(weight), to_text(image)));
  }
  TensorShape shape = {image[0], weight[0]};
  const std::vector<std::int64_t> kernel = call.node.integers_or("kernel_shape", {weight.begin() + 2, weight.end()});
  for (const OnnxWindow& window : windows_of(call.node, image, kernel, call.place)) shape.push_back(window.output);
  return one_shape(shape);
}

OnnxShapes transposed_convolution(const ShapeCall& call) {
  require_rank(call, 3, "image");
  const TensorShape &image = call.shape(0), &weight = call.shape(1);
  if (weight.size() != image.size() || weight[0] != image[1]) {
    call.fail(fmt::format("weights {} do not fit the image {}", to_text(weight), to_text(image)));
  }
  TensorShape shape = {image[0], weight[1] * call.node.integer_or("group", 1)};
  const std::vector<std::int64_t> kernel = call.node.integers_or("kernel_shape", {weight.begin() + 2, weight.end()});
  for (const OnnxWindow& window : transposed_windows_of(call.node, image, kernel, call.place))
    shape.push_back(window.output);
  return one_shape(shape);
}

OnnxShapes pooling(const ShapeCall& call) {
  require_rank(call, 3, "image");
  const TensorShape& image = call.shape(0);
  TensorShape shape = {image[0], image[1]};
  for (const OnnxWindow& window : windows_of(call.node, image, call.node.integers_or("kernel_shape", {}), call.place))
    shape.push_back(window.output);
  return std::vector<TensorShape>(call.node.outputs.size(), shape);
}

OnnxShapes global_pooling(const ShapeCall& call) {
  require_rank(call, 3, "image");
  TensorShape shape = call.shape(0);
  std::fill(shape.begin() + 2, shape.end(), 1);
  return one_shape(shape);
}

OnnxShapes matmul(const ShapeCall& call) {
  TensorShape left = call.shape(0), right = call.shape(1);
  const bool row = left.size() == 1, column = right.size() == 1;
  if (row) left.insert(left.begin(), 1);
  if (column) right.push_back(1);
  if (left.size() < 2 || right.size() < 2 || left.back() != right[right.size() - 2]) {
    call.fail(fmt::format("{} and {} have no product: the inner sizes must be equal", to_text(call.shape(0)),
                          to_text(call.shape(1))));
  }
  TensorShape shape = broadcast_shape({left.begin(), left.end() - 2}, {right.begin(), right.end() - 2}, call.place);
  if (!row) shape.push_back(left[left.size() - 2]);
  if (!column) shape.push_back(right.back());
  return one_shape(shape);
}

OnnxShapes gemm(const ShapeCall& call) {
  const TensorShape &left = call.shape(0), &right = call.shape(1);
  const bool across = call.node.integer_or("transA", 0) != 0, turned = call.node.integer_or("transB", 0) != 0;
  if (left.size() != 2 || right.size() != 2 || left[across ? 0 : 1] != right[turned ? 1 : 0]) {
    call.fail(fmt::format("{} and {} have no product: the inner sizes must be equal", to_text(left), to_text(right)));
  }
  return one_shape({left[across ? 1 : 0], right[turned ? 0 : 1]});
}

OnnxShapes einsum(const ShapeCall& call) {
  if (call.inputs.size() != 2) return std::nullopt;
  const auto found = einsum_of(call.node.text_or("equation", ""), call.shape(0), call.shape(1), call.place);
  if (!found) return std::nullopt;
  return one_shape(found->shape);
}

/// LSTM, GRU and RNN: all outputs, the last one, and an LSTM's last cell. Batches stand behind the tokens, unless `layout`
/// is 1.
OnnxShapes recurrent(const ShapeCall& call) {
  require_rank(call, 3, "sequence of vectors");
  const TensorShape &x = call.shape(0), &recurrence = call.shape(2);
  if (recurrence.size() != 3 || call.shape(1).size() != 3 || call.shape(1)[2] != x[2])
    call.fail(fmt::format("weights {} and {} do not fit the sequence {}", to_text(call.shape(1)), to_text(recurrence),
                          to_text(x)));
  const std::int64_t directions = recurrence[0], hidden = recurrence[2];
  const bool batch_first = call.node.integer_or("layout", 0) != 0;
  const TensorShape all =
      batch_first ? TensorShape{x[0], x[1], directions, hidden} : TensorShape{x[0], directions, x[1], hidden};
  const TensorShape last = batch_first ? TensorShape{x[0], directions, hidden} : TensorShape{directions, x[1], hidden};
  return std::vector<TensorShape>{all, last, last};
}

}  // namespace

const ShapeRules& product_shapes() {
  static const ShapeRules kRules = {{"Conv", convolution},
                                    {"ConvTranspose", transposed_convolution},
                                    {"MaxPool", pooling},
                                    {"AveragePool", pooling},
                                    {"LpPool", pooling},
                                    {"GlobalAveragePool", global_pooling},
                                    {"GlobalMaxPool", global_pooling},
                                    {"MatMul", matmul},
                                    {"Gemm", gemm},
                                    {"Einsum", einsum},
                                    {"LSTM", recurrent},
                                    {"GRU", recurrent},
                                    {"RNN", recurrent}};
  return kRules;
}

}}  // namespace plumb::planner
