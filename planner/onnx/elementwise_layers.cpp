#include <algorithm>
#include <map>
#include <string_view>

#include "planner/onnx/onnx_step.h"

namespace plumb { inline namespace planner {
namespace {

/// Functions of each number that the layer graph has by name.
const std::map<std::string_view, std::string_view>& activations() {
  static const std::map<std::string_view, std::string_view> kActivations = {
      {"Relu", "relu"},       {"Gelu", "gelu"},       {"Tanh", "tanh"},
      {"Sigmoid", "sigmoid"}, {"Softmax", "softmax"}, {"LogSoftmax", "log_softmax"}};
  return kActivations;
}

void pass_on(const OnnxStep& step, LayerWriter& writer, const std::string& layer) {
  writer.bind(step.node.outputs[0], step.outputs[0], layer, step.inputs[0]->shape, step.inputs[0]->image);
}

bool activation(const OnnxStep& step, LayerWriter& writer, std::string_view op) {
  const OnnxTensorPlace& x = *step.inputs[0];
  if (op == "relu") {
    if (LayerWriter::Json* before = writer.sole_producer(x, {"convolution", "linear"});
        before && !before->contains("activation")) {
      (*before)["activation"] = "relu";
      pass_on(step, writer, x.layer);
      return true;
    }
  }
  pass_on(step, writer, writer.add(step.node.name, {{"op", op}}, {x.layer}));
  return true;
}

/// A bias that is added to the product before it.
bool bias_of_product(const OnnxStep& step, LayerWriter& writer) {
  for (const std::size_t i : {0, 1}) {
    if (!step.has_layer(i) || !step.is_known(1 - i)) continue;
    const OnnxTensorPlace &x = *step.inputs[i], &bias = *step.inputs[1 - i];
    if (bias.value.shape.size() != 1 || bias.weights.size() != 1 || x.value.shape != step.shape()) continue;
    LayerWriter::Json* before = writer.sole_producer(x, {"linear"});
    const bool fits = before != nullptr && before->at("bias") == false && !before->contains("activation") &&
                      before->at("out") == bias.value.shape[0] && !x.shape.empty() &&
                      x.shape.back() == bias.value.shape[0];
    if (!fits) continue;
    (*before)["bias"] = true;
    writer.new_parameters(bias, x.layer);
    writer.bind(step.node.outputs[0], step.outputs[0], x.layer, x.shape, x.image);
    return true;
  }
  return false;
}

bool combination(const OnnxStep& step, LayerWriter& writer, std::string_view op) {
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    const bool alike = step.has_layer(i) && step.inputs[i]->shape == step.inputs[0]->shape &&
                       step.inputs[i]->image == step.inputs[0]->image && step.inputs[i]->value.numbers;
    if (!alike) return false;
  }
  if (op == "multiply" && step.inputs.size() != 2) return false;
  std::vector<std::string> layers;
  for (const OnnxTensorPlace* input : step.inputs) layers.push_back(input->layer);
  pass_on(step, writer, writer.add(step.node.name, {{"op", op}}, layers));
  return true;
}

/// A norm over the last axis.
bool row_norm(const OnnxStep& step, LayerWriter& writer, std::string_view op) {
  const OnnxTensorPlace& x = *step.inputs[0];
  const std::int64_t rank = std::ssize(x.value.shape), axis = step.node.integer_or("axis", -1);
  if ((axis != -1 && axis != rank - 1) || x.image || !step.is_known(1)) return false;
  LayerWriter::Json layer = {{"op", op}};
  if (op == "layer_norm") layer["bias"] = step.given(2);
  const std::string name = writer.add(step.node.name, std::move(layer), {x.layer});
  for (const OnnxTensorPlace* input : step.inputs)
    if (input != nullptr) writer.new_parameters(*input, name);
  pass_on(step, writer, name);
  return true;
}

bool dropout(const OnnxStep& step, LayerWriter& writer) {
  if (step.given(2) && step.inputs[2]->value.integers == std::vector<std::int64_t>{0}) return false;
  double rate = 0.5;  // ONNX's default
  if (const auto ratio = step.node.attributes.find("ratio"); ratio != step.node.attributes.end())
    rate = ratio->second.number;
  if (step.given(1)) rate = step.inputs[1]->value.first;
  if (rate < 0 || rate >= 1) return false;
  pass_on(step, writer, writer.add(step.node.name, {{"op", "dropout"}, {"rate", rate}}, {step.inputs[0]->layer}));
  return true;
}

}  // namespace

bool elementwise_layers(const OnnxStep& step, LayerWriter& writer) {
  const std::string& op = step.node.op;
  if (!step.outputs.front().numbers) return false;
  if (op == "Add" && bias_of_product(step, writer)) return true;
  if (op == "Add" || op == "Sum") return combination(step, writer, "add");
  if (op == "Mul") return combination(step, writer, "multiply");
  if (!step.has_layer(0) || !step.inputs[0]->value.numbers) return false;
  if (const auto found = activations().find(op); found != activations().end())
    return activation(step, writer, found->second);
  if (op == "LayerNormalization") return row_norm(step, writer, "layer_norm");
  if (op == "RMSNormalization") return row_norm(step, writer, "rms_norm");
  if (op == "Dropout") return dropout(step, writer);
  return false;
}

bool view_layers(const OnnxStep& step, LayerWriter& writer) {
  constexpr std::string_view kViews[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
  const std::string& op = step.node.op;
  if (!step.has_layer(0)) return false;
  const bool same_kind = step.outputs.front().numbers == step.inputs[0]->value.numbers;
  if (op == "Identity" || op == "Dropout" || (op == "Cast" && same_kind)) {
    pass_on(step, writer, step.inputs[0]->layer);
    return true;
  }
  if (std::ranges::find(kViews, op) == std::end(kViews)) return false;
  const OnnxTensorPlace turned =
      writer.reshaped(*step.inputs[0], writer.of_a_sample(step.shape(), step.place), step.node.name);
  writer.bind(step.node.outputs[0], step.outputs[0], turned.layer, turned.shape);
  return true;
}

void any_function(const OnnxStep& step, LayerWriter& writer, std::size_t first) {
  constexpr std::string_view kKeepNothing[] = {
      "Add",    "Sub",    "Sum",   "Neg",  "Transpose", "Slice",      "Split",     "Concat",       "Gather",
      "Expand", "Pad",    "Tile",  "Cast", "Trilu",     "ReduceMean", "ReduceSum", "DepthToSpace", "SpaceToDepth",
      "Resize", "CumSum", "Range", "Mean", "Identity",  "Upsample",   "Where"};
  constexpr std::string_view kKeepOutput[] = {"Exp", "Sqrt", "Reciprocal"};
  const auto is_in = [&](const auto& list) { return std::ranges::find(list, step.node.op) != std::end(list); };
  std::vector<std::string> layers;
  const OnnxTensorPlace* image = nullptr;
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    if (!step.has_layer(i)) continue;
    layers.push_back(step.inputs[i]->layer);
    if (step.inputs[i]->image && step.inputs[i]->value.shape == step.shape()) image = step.inputs[i];
  }
  for (std::size_t output = first; output < step.outputs.size(); ++output) {
    const OnnxValue& value = step.outputs[output];
    const std::string& tensor = step.node.outputs[output];
    if (tensor.empty() || (output > 0 && !writer.is_read(tensor))) continue;
    const bool turned = image != nullptr && output == 0;
    const TensorShape shape = turned ? image->shape : writer.of_a_sample(value.shape, step.place);
    LayerWriter::Json layer = {{"op", "tensor_function"}, {"shape", shape}};
    layer["keeps"] = is_in(kKeepNothing) ? "nothing" : is_in(kKeepOutput) ? "output" : "inputs";
    if (!value.numbers) layer["integers"] = true;
    LayerWriter::Json parameters = LayerWriter::Json::array();
    for (std::size_t i = 0; i < step.inputs.size(); ++i)
      if (step.is_known(i))
        for (const LayerWriter::Json& shape_of_weight : writer.new_parameters(*step.inputs[i], step.node.name))
          parameters.push_back(shape_of_weight);
    if (!parameters.empty()) layer["parameters"] = std::move(parameters);
    const std::string name = output == 0 ? step.node.name : tensor;
    writer.bind(tensor, value, writer.add(name, std::move(layer), layers), shape, turned);
  }
}

}}  // namespace plumb::planner
