#include "planner/onnx/onnx_model.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/onnx/onnx_step.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

using NamedSizes = std::map<std::string, std::int64_t>;

constexpr std::int64_t kLargestOutput = std::int64_t{1} << 40;

/// Returns the shape of an input. Throws SpecError where a size has no number.
TensorShape shape_of(const OnnxInput& input, const NamedSizes& sizes, std::int64_t batch, const std::string& file) {
  TensorShape shape;
  for (std::size_t i = 0; i < input.shape.size(); ++i) {
    const OnnxDimension& size = input.shape[i];
    const auto given = sizes.find(size.name);
    if (size.size > 0) {
      shape.push_back(size.size);
    } else if (i == 0) {
      shape.push_back(batch);
    } else if (given != sizes.end()) {
      shape.push_back(given->second);
    } else {
      throw SpecError(fmt::format(
          "{}: size {} of input {} has no number: {}", file, i, input.name,
          size.name.empty() ? "export the model with it" : fmt::format("give it, as in {}:{}=128", file, size.name)));
    }
  }
  return shape;
}

/// Returns the samples in the first axis of the inputs.
std::int64_t batch_of(const std::vector<OnnxInput>& inputs) {
  for (const OnnxInput& input : inputs)
    if (!input.shape.empty() && input.shape.front().size > 0) return input.shape.front().size;
  return 1;
}

/// Returns the shape that the file states for a tensor, if all its sizes have numbers.
std::optional<TensorShape> stated_shape(const OnnxFile& file, const std::string& tensor, const NamedSizes& sizes) {
  const auto stated = file.stated.find(tensor);
  if (stated == file.stated.end()) return std::nullopt;
  TensorShape shape;
  for (const OnnxDimension& size : stated->second) {
    const auto given = sizes.find(size.name);
    if (size.size == 0 && given == sizes.end()) return std::nullopt;
    shape.push_back(size.size > 0 ? size.size : given->second);
  }
  return shape;
}

class Import {
 public:
  Import(const OnnxFile& file, const std::string& name, NamedSizes sizes)
      : file_(file),
        name_(name),
        sizes_(std::move(sizes)),
        batch_(batch_of(file.inputs)),
        writer_(name, batch_, readers_of(file)) {
    for (const OnnxInput& input : file.inputs)
      if (!input.shape.empty() && !input.shape.front().name.empty()) sizes_.emplace(input.shape.front().name, batch_);
  }

  OnnxModel run() {
    for (const auto& [name, weight] : file_.weights) writer_.add_weight(name, weight);
    for (const OnnxInput& input : file_.inputs) add_input(input);
    for (const OnnxNode& node : file_.nodes) add(node);
    OnnxModel model{.external = file_.external};
    model.model = model_from_json(graph(model.notes), name_);
    add_unknown(model.notes);
    return model;
  }

 private:
  static std::map<std::string, int> readers_of(const OnnxFile& file) {
    std::map<std::string, int> readers;
    for (const OnnxNode& node : file.nodes)
      for (const std::string& input : node.inputs) ++readers[input];
    for (const std::string& output : file.outputs) ++readers[output];
    return readers;
  }

  void add_input(const OnnxInput& input) {
    const OnnxValue value{.shape = shape_of(input, sizes_, batch_, name_), .numbers = input.numbers};
    if (value.shape.empty()) {
      writer_.add_known(input.name, value, {});  // a flag
    } else {
      writer_.add_input(input.name, value);
    }
  }

  void add(const OnnxNode& node) {
    const std::string place = fmt::format("{}: node {} ({})", name_, node.name, node.op);
    std::vector<const OnnxTensorPlace*> inputs;
    std::vector<const OnnxValue*> values;
    for (const std::string& input : node.inputs) {
      inputs.push_back(input.empty() ? nullptr : &writer_.tensor(input));
      values.push_back(input.empty() ? nullptr : &inputs.back()->value);
    }
    const std::vector<OnnxValue> outputs = outputs_of(node, values, place);
    const bool known = outputs.front().integers.has_value() || std::ranges::none_of(inputs, [](const auto* input) {
                         return input != nullptr && !input->layer.empty();
                       });
    if (known) {
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (!node.outputs[i].empty()) writer_.add_known(node.outputs[i], outputs[i], inputs);
      return;
    }
    const OnnxStep step{.node = node, .outputs = outputs, .inputs = std::move(inputs), .place = place};
    if (recurrent_layers(step, writer_)) return;
    const bool written = image_layers(step, writer_) || product_layers(step, writer_) ||
                         elementwise_layers(step, writer_) || view_layers(step, writer_);
    any_function(step, writer_, written ? 1 : 0);
  }

  std::vector<OnnxValue> outputs_of(const OnnxNode& node, const std::vector<const OnnxValue*>& inputs,
                                    const std::string& place) {
    std::optional<std::vector<OnnxValue>> outputs = infer_shapes(node, inputs, place);
    if (!outputs) {
      ++unknown_[node.op];
      outputs.emplace();
    }
    for (std::size_t i = outputs->size(); i < node.outputs.size(); ++i) {
      const std::string& output = node.outputs[i];
      const auto stated = stated_shape(file_, output, sizes_);
      if (!stated && (i == 0 || writer_.is_read(output))) {
        throw SpecError(fmt::format(
            "{}: the shape of its output {} is not known{}: write the shapes into the file with ONNX's shape inference "
            "(onnx.shape_inference.infer_shapes_path), or export the model with fixed sizes",
            place, output, file_.external.empty() ? "" : ", and values may lie in " + file_.external));
      }
      outputs->push_back({.shape = stated.value_or(TensorShape{})});
    }
    outputs->resize(node.outputs.size());
    for (const OnnxValue& output : *outputs) {
      double count = 1;
      for (const std::int64_t size : output.shape) count *= static_cast<double>(size);
      if (count > static_cast<double>(kLargestOutput))
        throw SpecError(
            fmt::format("{}: its output {} is larger than any memory: check its sizes", place, to_text(output.shape)));
    }
    return *outputs;
  }

  nlohmann::json graph(std::vector<std::string>& notes) {
    std::vector<std::string> losses;
    for (const std::string& output : file_.outputs) {
      const OnnxTensorPlace& tensor = writer_.tensor(output);
      if (tensor.layer.empty() || !tensor.value.numbers) continue;
      losses.push_back(writer_.add(losses.empty() ? "loss" : "loss of " + output, {{"op", "loss"}}, {tensor.layer}));
    }
    if (losses.empty()) {
      throw SpecError(
          fmt::format("{}: no output of floating-point numbers depends on an input, and there is nothing to "
                      "train: export the model with its inputs",
                      name_));
    }
    LayerWriter::Json nodes = writer_.layers_before(losses);
    if (const std::size_t left = writer_.size() - nodes.size(); left > 0)
      notes.push_back(fmt::format("{} layers that no loss needs are left out", left));
    // The layer graph takes the last node for an end that nobody needs to read.
    const std::string stem = std::filesystem::path(name_).stem().string();
    return {{"name", stem}, {"source", "an ONNX file"}, {"nodes", nlohmann::json(nodes)}};
  }

  void add_unknown(std::vector<std::string>& notes) const {
    if (unknown_.empty()) return;
    std::vector<std::string> names;
    for (const auto& [op, count] : unknown_) names.push_back(fmt::format("{} (x{})", op, count));
    notes.push_back(fmt::format("operators that are not known are priced by their bytes, without their FLOPs: {}",
                                fmt::join(names, ", ")));
  }

  const OnnxFile& file_;
  const std::string& name_;
  NamedSizes sizes_;
  std::int64_t batch_;
  LayerWriter writer_;
  std::map<std::string, int> unknown_;  ///< [operator] nodes
};

}  // namespace

OnnxModel model_from_onnx(std::string_view bytes, const std::string& file, const NamedSizes& sizes) {
  const OnnxFile parsed = parse_onnx(bytes, file);
  return Import(parsed, file, sizes).run();
}

}}  // namespace plumb::planner
