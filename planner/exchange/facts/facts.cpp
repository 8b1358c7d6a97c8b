#include "planner/exchange/facts/facts.h"

#include <cmath>

#include <fmt/format.h>

#include "planner/exchange/forms/plain_value.h"
#include "planner/spec/layout_keys.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

constexpr const char* kModelPrefix = "model.";

/// Keys of a training that are facts; its stack is what runs the facts.
constexpr const char* kTrainingFacts[] = {"global_batch", "seq", "precision", "gradient_precision", "optimizer"};

json as_json(bool value) {
  return value;
}
json as_json(int value) {
  return value;
}
json as_json(std::int64_t value) {
  return value;
}
template <class Named>
json as_json(const Named& value) {
  return value_text(value);
}

/// Parsers of arguments for whole numbers refuse "500000.0".
json whole_if_it_is(const json& value) {
  constexpr double kLargest = 1e15;
  if (!value.is_number_float()) return value;
  const auto number = value.get<double>();
  if (std::abs(number) > kLargest || number != std::floor(number)) return value;
  return static_cast<std::int64_t>(number);
}

json layout_part(const Facts& facts) {
  json part = json::object();
  const auto take = [&](const std::string& key) {
    if (const json& value = fact_at(facts, key); !value.is_null()) part[key] = value;
  };
  visit_layout_keys([&](std::string_view key, auto) { take(std::string(key)); });
  if (const json& split = fact_at(facts, "split"); !split.is_null() && !split.empty()) part["split"] = split;
  // A layout's JSON form has no word for the stack's own way to divide sequences: it is the default.
  if (fact_at(facts, "cp_kind") == json(value_text(ContextKind::kOfStack))) part.erase("cp_kind");
  return part;
}

std::optional<ModelSpec> model_part(const Facts& facts, const std::string& place) {
  json part = json::object();
  for (const auto& [name, value] : facts) {
    if (name.starts_with(kModelPrefix) && !value.is_null())
      part[name.substr(std::string_view(kModelPrefix).size())] = value;
  }
  if (!part.contains("layers") || !part.contains("hidden")) return std::nullopt;
  part["name"] = place;
  return model_from_json(part, place);
}

}  // namespace

const std::vector<std::string>& run_fact_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    visit_layout_keys([&](std::string_view key, auto) { names.emplace_back(key); });
    names.emplace_back("split");
    names.insert(names.end(), std::begin(kTrainingFacts), std::end(kTrainingFacts));
    return names;
  }();
  return kNames;
}

Facts facts_of(const ModelSpec& model, const TrainingSpec& training, const Layout& layout) {
  Facts facts;
  visit_layout_keys([&](std::string_view key, auto place) { facts[std::string(key)] = as_json(layout.*place); });
  if (layout.zero == 0 || layout.shard == layout.data * layout.context) facts["shard"] = 0;
  facts["split"] = layout.split;
  const nlohmann::ordered_json of_training = to_json(training);
  for (const char* key : kTrainingFacts) facts[key] = of_training.at(key);
  if (model.graph) {
    facts["model.graph"] = true;
    return facts;
  }
  const nlohmann::ordered_json of_model = to_json(model);
  for (const auto& [key, value] : of_model.items()) facts[kModelPrefix + key] = whole_if_it_is(value);
  facts["model.dropout"] = whole_if_it_is(model.dropout);
  // These describe where the model comes from, not what it is.
  for (const char* key : {"model.name", "model.source", "model.sequence"}) facts.erase(key);
  return facts;
}

Facts facts_of(const LayoutRequest& request) {
  Facts facts;
  visit_layout_keys<std::optional>([&](std::string_view key, auto, auto question) {
    if (const auto& answer = request.*question) facts[std::string(key)] = as_json(*answer);
  });
  if (request.split) facts["split"] = *request.split;
  return facts;
}

const json& fact_at(const Facts& facts, std::string_view name) {
  static const json kUnknown;
  const auto found = facts.find(name);
  return found == facts.end() ? kUnknown : found->second;
}

std::optional<std::int64_t> count_at(const Facts& facts, std::string_view name) {
  const json& value = fact_at(facts, name);
  return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

void learn(Facts& facts, const std::string& name, const json& value, const std::string& place) {
  json& known = facts[name];
  if (known.is_null()) known = value;
  if (known == value) return;
  throw SpecError(fmt::format("{}: {} is {} by one setting and {} by another: let them agree", place, name,
                              plain_text(known), plain_text(value)));
}

ReadRun run_of(const Facts& facts, const std::string& place) {
  ReadRun run;
  run.layout = layout_from_json(layout_part(facts), place);
  run.global_batch = count_at(facts, "global_batch");
  run.sequence = count_at(facts, "seq");
  const auto name = [&](const char* fact) -> std::optional<std::string> {
    const json& value = fact_at(facts, fact);
    return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
  };
  if (const auto given = name("precision")) run.precision = precision_from_name(*given, place);
  if (const auto given = name("gradient_precision")) run.gradient_precision = precision_from_name(*given, place);
  if (const auto given = name("optimizer")) run.optimizer = optimizer_from_name(*given, place);
  run.model = model_part(facts, place);
  return run;
}

}}  // namespace plumb::planner
