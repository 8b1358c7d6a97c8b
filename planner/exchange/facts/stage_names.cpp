#include "planner/exchange/facts/stage_names.h"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/whole_number.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::string_view kLayer = "layers.";

}  // namespace

nlohmann::json torchtitan_modules(const std::vector<int>& split) {
  nlohmann::json parts = nlohmann::json::array();
  int layer = 0;
  for (const int layers : split) {
    nlohmann::json& names = parts.emplace_back(nlohmann::json::array());
    if (parts.size() == 1) names.push_back("tok_embeddings");
    for (int i = 0; i < layers; ++i) names.push_back(fmt::format("{}{}", kLayer, layer++));
  }
  for (const char* last : {"norm", "output"}) parts.back().push_back(last);
  return parts;
}

std::vector<int> split_of_torchtitan(const nlohmann::json& modules, const std::string& place) {
  std::vector<int> split;
  int next = 0;
  for (const nlohmann::json& names : modules) {
    split.push_back(0);
    for (const nlohmann::json& name : names) {
      const std::string text = name.is_string() ? name.get<std::string>() : "";
      if (!text.starts_with(kLayer)) continue;
      if (whole_number<int>(std::string_view(text).substr(kLayer.size())) != next) {
        throw SpecError(
            fmt::format("{}: module_fqns_per_model_part has {} where layers.{} follows: give the layers in "
                        "the order of the model",
                        place, text, next));
      }
      ++next;
      ++split.back();
    }
  }
  return split;
}

}}  // namespace plumb::planner
