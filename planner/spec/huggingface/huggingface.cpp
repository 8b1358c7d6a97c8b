#include "planner/spec/huggingface/huggingface.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/spec/huggingface/families.h"

namespace plumb { inline namespace planner {
namespace {

std::vector<HuggingFaceFamily> all_families() {
  std::vector<HuggingFaceFamily> all;
  for (const auto& families : {rms_families(), expert_families(), layer_norm_families(), state_space_families(),
                               hybrid_families(), encoder_families()})
    all.insert(all.end(), families.begin(), families.end());
  return all;
}

/// Returns the family that reads files of that type. Throws SpecError if there is none.
HuggingFaceFamily family_of(const std::string& type, const HuggingFaceConfig& config) {
  const std::string_view other = family_read_as(type);
  const std::vector<HuggingFaceFamily> families = all_families();
  const auto family = std::ranges::find(families, other.empty() ? type : other, &HuggingFaceFamily::model_type);
  if (family != families.end()) return *family;
  if (const std::string_view why = why_not_read(type); !why.empty())
    config.fail("model_type", fmt::format("\"{}\" {}", type, why));
  std::vector<std::string_view> known;
  for (const HuggingFaceFamily& candidate : families) known.push_back(candidate.model_type);
  std::ranges::sort(known);
  config.fail("model_type",
              fmt::format("\"{}\" is not supported: use a {} model, or write its sizes as a Plumb model file", type,
                          fmt::join(known, ", ")));
}

/// Returns the configuration of the text model inside a model of several media, or the whole where there is none
/// inside. The outer configuration gives the keys that the inner one leaves to it.
nlohmann::json text_model_of(const nlohmann::json& whole) {
  if (!whole.is_object() || !whole.contains("text_config") || !whole.at("text_config").is_object()) return whole;
  nlohmann::json text = whole.at("text_config");
  for (const char* key : {"model_type", "tie_word_embeddings", "_name_or_path"}) {
    if (!text.contains(key) && whole.contains(key)) text[key] = whole.at(key);
  }
  if (text.value("model_type", nlohmann::json()) == "gemma3_text") {  // files of the larger models leave these out
    for (const auto& [key, value] :
         {std::pair{"num_attention_heads", 8}, std::pair{"num_key_value_heads", 4}, std::pair{"head_dim", 256},
          std::pair{"vocab_size", 262208}, std::pair{"max_position_embeddings", 131072}}) {
      if (!text.contains(key)) text[key] = value;
    }
  }
  return text;
}

}  // namespace

ImportedModel model_from_huggingface(std::string_view text, const std::string& file) {
  const nlohmann::json whole = parse_json(text, file);
  const nlohmann::json json = text_model_of(whole);
  HuggingFaceConfig config(json, file);
  const std::string type = config.text("model_type");
  ImportedModel imported{.model = family_of(type, config).read(config)};
  if (constexpr const char* kAhead = "num_nextn_predict_layers"; !imported.model.graph && config.has(kAhead))
    imported.model.mtp_modules = config.count_or(kAhead, 0);
  imported.model.name = config.text_or("_name_or_path", file);
  if (imported.model.name.empty()) imported.model.name = file;
  imported.model.source = fmt::format("Hugging Face configuration {}, model_type {}", file, type);
  nlohmann::ordered_json read = to_json(imported.model);
  read["name"] = imported.model.name;  // a graph has a name of its own
  read["source"] = imported.model.source;
  imported.model = model_from_json(read, file);  // applies the rules that every model obeys
  imported.ignored_keys = config.ignored_keys();
  if (whole.contains("text_config") || whole.contains("vision_config")) {
    imported.note = "only the text model is read; what sees or hears is left out";
    std::erase(imported.ignored_keys, "vision_config");
  }
  return imported;
}

}}  // namespace plumb::planner
