#include <algorithm>

#include "planner/onnx/onnx_step.h"
#include "planner/onnx/onnx_window.h"

namespace plumb { inline namespace planner {
namespace {

TensorShape image_shape(const TensorShape& shape) {
  TensorShape image(shape.begin() + 2, shape.end());
  image.push_back(shape[1]);
  return image;
}

/// Returns one number for an image of one axis, and one for each axis of another.
LayerWriter::Json sizes_json(const std::vector<OnnxWindow>& windows, std::int64_t OnnxWindow::*member) {
  if (windows.size() == 1) return windows[0].*member;
  LayerWriter::Json sizes = LayerWriter::Json::array();
  for (const OnnxWindow& window : windows) sizes.push_back(window.*member);
  return sizes;
}

/// Returns the image, widened by a layer of its own where the paddings of two ends differ.
OnnxTensorPlace padded(const OnnxStep& step, LayerWriter& writer, std::vector<OnnxWindow>& windows) {
  OnnxTensorPlace image = writer.as_image(*step.inputs[0], step.node.name + ".image");
  const bool even = std::ranges::all_of(windows, [](const OnnxWindow& w) { return w.before == w.behind; });
  if (even) return image;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    image.shape[i] += windows[i].before + windows[i].behind;
    windows[i].before = windows[i].behind = 0;
  }
  image.layer = writer.add(step.node.name + ".pad",
                           {{"op", "tensor_function"}, {"shape", image.shape}, {"keeps", "nothing"}}, {image.layer});
  return image;
}

bool is_image(const OnnxStep& step) {
  const std::size_t rank = step.inputs[0]->value.shape.size();
  return step.has_layer(0) && rank >= 3 && rank <= 5;
}

bool convolution(const OnnxStep& step, LayerWriter& writer) {
  if (!is_image(step) || !step.is_known(1) || (step.given(2) && !step.is_known(2))) return false;
  const TensorShape& weight = step.inputs[1]->value.shape;
  std::vector<OnnxWindow> windows =
      windows_of(step.node, step.inputs[0]->value.shape, {weight.begin() + 2, weight.end()}, step.place);
  const OnnxTensorPlace image = padded(step, writer, windows);
  LayerWriter::Json layer = {{"op", "convolution"},
                             {"filters", weight[0]},
                             {"kernel", sizes_json(windows, &OnnxWindow::kernel)},
                             {"stride", sizes_json(windows, &OnnxWindow::stride)},
                             {"padding", sizes_json(windows, &OnnxWindow::before)},
                             {"dilation", sizes_json(windows, &OnnxWindow::dilation)},
                             {"groups", step.node.integer_or("group", 1)},
                             {"bias", step.given(2)}};
  const std::string name = writer.add(step.node.name, std::move(layer), {image.layer});
  writer.new_parameters(*step.inputs[1], name);
  writer.bind(step.node.outputs[0], step.outputs[0], name, image_shape(step.shape()), true);
  return true;
}

/// Half of what a side of the output lacks is its padding, and what is left of an odd number its output padding.
bool transposed_convolution(const OnnxStep& step, LayerWriter& writer) {
  if (!is_image(step) || !step.is_known(1) || (step.given(2) && !step.is_known(2))) return false;
  const TensorShape &image = step.inputs[0]->value.shape, &weight = step.inputs[1]->value.shape;
  const std::int64_t groups = step.node.integer_or("group", 1);
  LayerWriter::Json layer = {
      {"op", "transposed_convolution"}, {"filters", weight[1] * groups}, {"groups", groups}, {"bias", step.given(2)}};
  std::vector<OnnxWindow> windows =
      transposed_windows_of(step.node, image, {weight.begin() + 2, weight.end()}, step.place);
  std::vector<OnnxWindow> beyond = windows;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    OnnxWindow& window = windows[i];
    const std::int64_t lacks = (image[i + 2] - 1) * window.stride + window.reach() - window.output;
    window.before = lacks > 0 ? (lacks + 1) / 2 : 0;
    beyond[i].before = 2 * window.before - lacks;
  }
  layer["kernel"] = sizes_json(windows, &OnnxWindow::kernel);
  layer["stride"] = sizes_json(windows, &OnnxWindow::stride);
  layer["padding"] = sizes_json(windows, &OnnxWindow::before);
  layer["dilation"] = sizes_json(windows, &OnnxWindow::dilation);
  layer["output_padding"] = sizes_json(beyond, &OnnxWindow::before);
  const OnnxTensorPlace source = writer.as_image(*step.inputs[0], step.node.name + ".image");
  const std::string name = writer.add(step.node.name, std::move(layer), {source.layer});
  writer.new_parameters(*step.inputs[1], name);
  writer.bind(step.node.outputs[0], step.outputs[0], name, image_shape(step.shape()), true);
  return true;
}

bool pooling(const OnnxStep& step, LayerWriter& writer) {
  if (!is_image(step)) return false;
  std::vector<OnnxWindow> windows =
      windows_of(step.node, step.inputs[0]->value.shape, step.node.integers_or("kernel_shape", {}), step.place);
  if (std::ranges::any_of(windows, [](const OnnxWindow& window) { return window.dilation > 1; })) return false;
  const OnnxTensorPlace image = padded(step, writer, windows);
  LayerWriter::Json layer = {{"op", step.node.op == "MaxPool" ? "max_pooling" : "average_pooling"},
                             {"kernel", sizes_json(windows, &OnnxWindow::kernel)},
                             {"stride", sizes_json(windows, &OnnxWindow::stride)},
                             {"padding", sizes_json(windows, &OnnxWindow::before)},
                             {"ceil", step.node.integer_or("ceil_mode", 0) != 0}};
  const std::string name = writer.add(step.node.name, std::move(layer), {image.layer});
  writer.bind(step.node.outputs[0], step.outputs[0], name, image_shape(step.shape()), true);
  return true;
}

bool global_pooling(const OnnxStep& step, LayerWriter& writer) {
  if (!is_image(step)) return false;
  const OnnxTensorPlace image = writer.as_image(*step.inputs[0], step.node.name + ".image");
  const std::string name = writer.add(step.node.name, {{"op", "adaptive_average_pooling"}, {"size", 1}}, {image.layer});
  writer.bind(step.node.outputs[0], step.outputs[0], name, image_shape(step.shape()), true);
  return true;
}

bool batch_norm(const OnnxStep& step, LayerWriter& writer) {
  if (!step.has_layer(0) || step.inputs[0]->value.shape.size() < 2 || !step.is_known(1)) return false;
  OnnxTensorPlace image = *step.inputs[0];
  if (image.value.shape.size() > 2) image = writer.as_image(image, step.node.name + ".image");
  const std::string name = writer.add(step.node.name, {{"op", "batch_norm"}}, {image.layer});
  writer.bind(step.node.outputs[0], step.outputs[0], name, image.shape, image.image);
  return true;
}

}  // namespace

bool image_layers(const OnnxStep& step, LayerWriter& writer) {
  const std::string& op = step.node.op;
  if (op == "Conv") return convolution(step, writer);
  if (op == "ConvTranspose") return transposed_convolution(step, writer);
  if (op == "MaxPool" || op == "AveragePool") return pooling(step, writer);
  if (op == "GlobalAveragePool") return global_pooling(step, writer);
  if (op == "BatchNormalization") return batch_norm(step, writer);
  return false;
}

}}  // namespace plumb::planner
