#include "planner/spec/huggingface/huggingface.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/spec/huggingface/families.h"

namespace plumb {
namespace {

std::vector<HuggingFaceFamily> all_families() {
  std::vector<HuggingFaceFamily> all;
  for (const auto& families : {rms_families(), expert_families(), layer_norm_families()})
    all.insert(all.end(), families.begin(), families.end());
  return all;
}

}  // namespace

ImportedModel model_from_huggingface(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  HuggingFaceConfig config(json, file);
  const std::string type = config.text("model_type");
  const std::vector<HuggingFaceFamily> families = all_families();
  const auto family = std::ranges::find(families, type, &HuggingFaceFamily::model_type);
  if (family == families.end()) {
    std::vector<std::string_view> known;
    for (const HuggingFaceFamily& candidate : families) known.push_back(candidate.model_type);
    std::ranges::sort(known);
    config.fail("model_type",
                fmt::format("\"{}\" is not supported: use a {} model, or write its sizes as a Plumb model file", type,
                            fmt::join(known, ", ")));
  }
  ImportedModel imported{.model = family->read(config)};
  imported.model.name = config.text_or("_name_or_path", file);
  if (imported.model.name.empty()) imported.model.name = file;
  imported.model.source = fmt::format("Hugging Face configuration {}, model_type {}", file, type);
  imported.model = model_from_json(to_json(imported.model), file);  // for the rules that every model obeys
  imported.ignored_keys = config.ignored_keys();
  return imported;
}

}  // namespace plumb
