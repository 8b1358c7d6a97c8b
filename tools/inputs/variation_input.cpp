#include "tools/inputs/variation_input.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tools/inputs/inputs.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

/// Returns the part of the plan that a value names.
nlohmann::json part_named(const std::string& key, const std::string& name, const Plan& plan) {
  if (key == "model") return to_json(model_input(name));
  if (key == "stack") return name == kOwnExecutor ? nlohmann::json() : nlohmann::json(to_json(stack_input(name)));
  ClusterSpec cluster = cluster_input(name);
  if (name.find(':') == std::string::npos) cluster = resize(std::move(cluster), plan.cluster.devices);
  return to_json(cluster);
}

}  // namespace

Variation variation_input(const std::string& text, const Plan& plan) {
  Variation variation = read_option([&] { return parse_variation(text); });
  if (std::ranges::find(kVariedParts, variation.key) == kVariedParts.end()) return variation;
  for (const nlohmann::json& value : variation.values) {
    const std::string name = value.is_string() ? value.get<std::string>() : value.dump();
    variation.parts.push_back(part_named(variation.key, name, plan));
  }
  return variation;
}

}}  // namespace plumb::tools
