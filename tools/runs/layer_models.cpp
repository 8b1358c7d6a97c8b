#include "tools/runs/layer_models.h"

#include <algorithm>
#include <cassert>

#include "tools/inputs/inputs.h"
#include "tools/inputs/presets.h"

namespace plumb { inline namespace tools {

const std::vector<std::string>& layer_model_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Preset& preset : presets()) {
      if (preset.kind != Preset::Kind::kModel || preset.text.find("\"nodes\"") == std::string_view::npos) continue;
      if (!model_layers(model_input(std::string(preset.name))).empty()) names.emplace_back(preset.name);
    }
    return names;
  }();
  return kNames;
}

bool is_layer_model(std::string_view name) {
  return std::ranges::find(layer_model_names(), name) != layer_model_names().end();
}

std::vector<Layer> layer_model(std::string_view name, std::int64_t outputs) {
  assert(is_layer_model(name));
  ModelSpec model = model_input(std::string(name));
  model.graph->sizes["classes"] = outputs;
  return model_layers(model);
}

}}  // namespace plumb::tools
