#include "planner/onnx/layer_writer.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {

void LayerWriter::add_weight(const std::string& name, const OnnxTensor& weight) {
  OnnxTensorPlace place{.value = {.shape = weight.shape, .numbers = weight.numbers, .first = weight.first}};
  if (!weight.integers.empty() || element_count(weight.shape) == 0) place.value.integers = weight.integers;
  if (weight.numbers) {
    place.weights = {name};
    weights_[name] = weight.shape;
  }
  tensors_[name] = std::move(place);
}

void LayerWriter::add_input(const std::string& name, const OnnxValue& value) {
  constexpr std::size_t kImage = 4, kVolume = 5, kMostSizes = 3;
  const TensorShape sample = of_a_sample(value.shape, fmt::format("{}: input {}", file_, name));
  if (!value.numbers) {
    const std::int64_t count = element_count(sample);
    bind(name, value, add(name, {{"op", "input"}, {"tokens", count}}, {}), {count});
  } else if (value.shape.size() == kImage || value.shape.size() == kVolume) {
    TensorShape image(value.shape.begin() + 2, value.shape.end());
    image.push_back(value.shape[1]);
    bind(name, value, add(name, {{"op", "input"}, {"shape", image}}, {}), image, true);
  } else {
    const TensorShape shape = sample.size() > kMostSizes ? TensorShape{element_count(sample)} : sample;
    bind(name, value, add(name, {{"op", "input"}, {"shape", shape}}, {}), shape);
  }
}

void LayerWriter::add_known(const std::string& name, const OnnxValue& value,
                            const std::vector<const OnnxTensorPlace*>& from) {
  OnnxTensorPlace place{.value = value};
  for (const OnnxTensorPlace* source : from)
    if (source != nullptr) place.weights.insert(place.weights.end(), source->weights.begin(), source->weights.end());
  tensors_[name] = std::move(place);
}

std::string LayerWriter::add(const std::string& name, Json attributes, const std::vector<std::string>& inputs) {
  // The layer graph gives names that begin with @ or $ a meaning.
  std::string own = name.empty() || name.front() == '@' || name.front() == '$' ? "n" + name : name;
  for (int i = 2; places_.contains(own); ++i) own = fmt::format("{}.{}", name, i);
  Json layer = {{"name", own}};
  layer.update(attributes);
  if (layer.at("op") != "input") layer["inputs"] = inputs;
  places_[own] = layers_.size();
  layers_.push_back(std::move(layer));
  return own;
}

void LayerWriter::bind(const std::string& name, const OnnxValue& value, const std::string& layer,
                       const TensorShape& shape, bool image) {
  const auto readers = readers_.find(name);
  tensors_[name] = {.value = value,
                    .layer = layer,
                    .shape = shape,
                    .image = image,
                    .readers = readers == readers_.end() ? 0 : readers->second,
                    .weights = {}};
}

OnnxTensorPlace LayerWriter::as_image(const OnnxTensorPlace& tensor, const std::string& name) {
  if (tensor.image) return tensor;
  TensorShape image(tensor.value.shape.begin() + 2, tensor.value.shape.end());
  image.push_back(tensor.value.shape[1]);
  OnnxTensorPlace turned = reshaped(tensor, image, name);
  turned.image = true;
  return turned;
}

OnnxTensorPlace LayerWriter::reshaped(const OnnxTensorPlace& tensor, const TensorShape& shape,
                                      const std::string& name) {
  OnnxTensorPlace turned = tensor;
  if (tensor.shape == shape && !tensor.image) return turned;
  turned.layer = shape.size() == 1 ? add(name, {{"op", "flatten"}}, {tensor.layer})
                                   : add(name, {{"op", "reshape"}, {"shape", shape}}, {tensor.layer});
  turned.shape = shape;
  turned.image = false;
  return turned;
}

TensorShape LayerWriter::of_a_sample(const TensorShape& shape, const std::string& place) const {
  if (shape.empty()) return {1};
  TensorShape sample = shape;
  if (sample[0] % batch_ != 0) {
    throw SpecError(
        fmt::format("{}: the first axis of {} does not hold the {} samples of the input's: export the "
                    "model with a batch of 1, or with a name for it",
                    place, to_text(shape), batch_));
  }
  sample[0] /= batch_;
  if (sample[0] == 1 && sample.size() > 1) sample.erase(sample.begin());
  return sample;
}

LayerWriter::Json LayerWriter::new_parameters(const OnnxTensorPlace& tensor, const std::string& layer) {
  Json shapes = Json::array();
  for (const std::string& weight : tensor.weights) {
    const TensorShape& shape = weights_.at(weight);
    if (element_count(shape) < 2) continue;  // a constant of the function: a scale, a bound
    if (owners_.emplace(weight, layer).second) shapes.push_back(shape);
  }
  return shapes;
}

std::string LayerWriter::tied_layer(const OnnxTensorPlace& tensor, std::int64_t rows, std::int64_t columns) const {
  if (tensor.weights.size() != 1 || element_count(weights_.at(tensor.weights.front())) != rows * columns) return {};
  const auto owner = owners_.find(tensor.weights.front());
  if (owner == owners_.end()) return {};
  const Json& layer = layers_[places_.at(owner->second)];
  const bool same =
      layer.at("op") == "embedding" ? layer.at("vocab") == rows : layer.at("op") == "linear" && layer.at("out") == rows;
  return same ? owner->second : std::string();
}

LayerWriter::Json* LayerWriter::sole_producer(const OnnxTensorPlace& tensor,
                                              std::initializer_list<std::string_view> operators) {
  const auto place = places_.find(tensor.layer);
  if (place == places_.end() || tensor.readers != 1) return nullptr;
  Json& layer = layers_[place->second];
  const bool wanted = std::ranges::find(operators, layer.at("op").get<std::string>()) != operators.end();
  return wanted ? &layer : nullptr;
}

LayerWriter::Json LayerWriter::layers_before(const std::vector<std::string>& ends) const {
  std::set<std::size_t> needed;
  for (const std::string& end : ends) needed.insert(places_.at(end));
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (!needed.contains(i) || !layers_[i].contains("inputs")) continue;
    for (const Json& input : layers_[i].at("inputs")) needed.insert(places_.at(input.get<std::string>()));
  }
  Json layers = Json::array();
  for (const std::size_t i : needed) layers.push_back(layers_[i]);
  return layers;
}

}}  // namespace plumb::planner
