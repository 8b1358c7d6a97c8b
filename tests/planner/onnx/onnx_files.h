#pragma once
// Writes ONNX files for tests, a node after the other.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <onnx.pb.h>

namespace plumb::test {

class OnnxWriter {
 public:
  using Sizes = std::vector<std::int64_t>;
  static constexpr int kFloat = 1, kInt64 = 7;

  plumb_onnx::ModelProto model;
  plumb_onnx::GraphProto& graph = *model.mutable_graph();

  OnnxWriter() { graph.set_name("test"); }

  /// An input whose first size is a named batch.
  std::string input(const std::string& name, const Sizes& behind_batch, int type = kFloat) {
    plumb_onnx::ValueInfoProto& value = *graph.add_input();
    value.set_name(name);
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape()->add_dim()->set_dim_param("batch");
    for (const std::int64_t size : behind_batch) tensor.mutable_shape()->add_dim()->set_dim_value(size);
    return name;
  }

  /// A weight of numbers, without its values.
  std::string weight(const std::string& name, const Sizes& shape) {
    plumb_onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(kFloat);
    for (const std::int64_t size : shape) tensor.add_dims(size);
    return name;
  }

  std::string integers(const std::string& name, const Sizes& values) {
    plumb_onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(kInt64);
    tensor.add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) tensor.add_int64_data(value);
    return name;
  }

  /// Adds a node and returns the name of its output, which is also the node's.
  std::string node(const std::string& op, const std::string& name, const std::vector<std::string>& inputs,
                   const std::vector<std::pair<std::string, Sizes>>& lists = {},
                   const std::vector<std::pair<std::string, std::int64_t>>& numbers = {}) {
    plumb_onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(op);
    node.set_name(name);
    node.add_output(name);
    for (const std::string& input : inputs) node.add_input(input);
    for (const auto& [key, values] : lists) {
      plumb_onnx::AttributeProto& attribute = *node.add_attribute();
      attribute.set_name(key);
      for (const std::int64_t value : values) attribute.add_ints(value);
    }
    for (const auto& [key, value] : numbers) {
      plumb_onnx::AttributeProto& attribute = *node.add_attribute();
      attribute.set_name(key);
      attribute.set_i(value);
    }
    return name;
  }

  std::string convolution(const std::string& name, const std::string& from, std::int64_t in, std::int64_t out,
                          std::int64_t kernel, std::int64_t stride = 1) {
    const std::int64_t pad = kernel / 2;
    return node("Conv", name, {from, weight(name + ".weight", {out, in, kernel, kernel})},
                {{"kernel_shape", {kernel, kernel}}, {"strides", {stride, stride}}, {"pads", {pad, pad, pad, pad}}});
  }

  std::string batch_norm(const std::string& name, const std::string& from, std::int64_t channels) {
    std::vector<std::string> inputs = {from};
    for (const char* part : {".gain", ".bias", ".mean", ".variance"}) inputs.push_back(weight(name + part, {channels}));
    return node("BatchNormalization", name, inputs);
  }

  void output(const std::string& name) { graph.add_output()->set_name(name); }

  std::string bytes() const { return model.SerializeAsString(); }
};

/// One bottleneck of ResNet-50 (He et al. 2016) on [64, 56, 56], with pooling and a classifier behind it.
inline std::string residual_network() {
  OnnxWriter onnx;
  const std::string x = onnx.input("image", {64, 56, 56});
  const std::string a =
      onnx.node("Relu", "relu1", {onnx.batch_norm("norm1", onnx.convolution("conv1", x, 64, 64, 1), 64)});
  const std::string b =
      onnx.node("Relu", "relu2", {onnx.batch_norm("norm2", onnx.convolution("conv2", a, 64, 64, 3), 64)});
  const std::string c = onnx.batch_norm("norm3", onnx.convolution("conv3", b, 64, 256, 1), 256);
  const std::string d = onnx.batch_norm("shortcut_norm", onnx.convolution("shortcut", x, 64, 256, 1), 256);
  const std::string sum = onnx.node("Relu", "relu", {onnx.node("Add", "add", {c, d})});
  const std::string pooled = onnx.node("Flatten", "flatten", {onnx.node("GlobalAveragePool", "pool", {sum})});
  onnx.output(onnx.node("Gemm", "classifier",
                        {pooled, onnx.weight("classifier.weight", {10, 256}), onnx.weight("classifier.bias", {10})}, {},
                        {{"transB", 1}}));
  return onnx.bytes();
}

/// A block of BERT's (Devlin et al. 2019) of `hidden` channels behind an embedding, attention written out as its
/// products and softmax, as PyTorch exports it.
inline std::string transformer_block(std::int64_t tokens = 128, std::int64_t hidden = 256, std::int64_t heads = 4) {
  OnnxWriter onnx;
  const auto linear = [&](const std::string& name, const std::string& from, std::int64_t in, std::int64_t out) {
    const std::string product = onnx.node("MatMul", name, {from, onnx.weight(name + ".weight", {in, out})});
    return onnx.node("Add", name + ".sum", {onnx.weight(name + ".bias", {out}), product});
  };
  const auto norm = [&](const std::string& name, const std::string& from) {
    return onnx.node("LayerNormalization", name,
                     {from, onnx.weight(name + ".gain", {hidden}), onnx.weight(name + ".bias", {hidden})});
  };
  const std::string ids = onnx.input("tokens", {tokens}, OnnxWriter::kInt64);
  const std::string x = onnx.node("Gather", "words", {onnx.weight("table", {1000, hidden}), ids});
  const std::string split = onnx.integers("split", {0, 0, heads, hidden / heads});
  const auto by_head = [&](const std::string& name, const OnnxWriter::Sizes& order) {
    const std::string heads_of = onnx.node("Reshape", name + ".heads", {linear(name, x, hidden, hidden), split});
    return onnx.node("Transpose", name + ".turned", {heads_of}, {{"perm", order}});
  };
  const std::string scores =
      onnx.node("MatMul", "scores", {by_head("query", {0, 2, 1, 3}), by_head("key", {0, 2, 3, 1})});
  const std::string scaled = onnx.node("Div", "scaled", {scores, onnx.weight("root", {})});
  const std::string shares = onnx.node("Softmax", "shares", {scaled}, {}, {{"axis", -1}});
  const std::string mixed = onnx.node("MatMul", "mixed", {shares, by_head("value", {0, 2, 1, 3})});
  const std::string turned = onnx.node("Transpose", "turned", {mixed}, {{"perm", {0, 2, 1, 3}}});
  const std::string joined = onnx.node("Reshape", "joined", {turned, onnx.integers("whole", {0, 0, hidden})});
  const std::string y = norm("norm1", onnx.node("Add", "add1", {linear("projection", joined, hidden, hidden), x}));
  const std::string up = onnx.node("Gelu", "gelu", {linear("up", y, hidden, 4 * hidden)});
  onnx.output(norm("norm2", onnx.node("Add", "add2", {linear("down", up, 4 * hidden, hidden), y})));
  return onnx.bytes();
}

}  // namespace plumb::test
