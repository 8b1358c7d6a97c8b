#include "planner/spec/stack_limits.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/spec/layout.h"
#include "schedules/forms/strict_json.h"
#include "schedules/generators/spellings.h"

namespace plumb { inline namespace planner {
namespace {

/// Visits the members that are true or false with their keys.
template <class Limits, class Visit>
void visit_flags(Limits& limits, const Visit& visit) {
  visit("tensor", limits.tensor);
  visit("tensor_across_nodes", limits.tensor_across_nodes);
  visit("pipeline", limits.pipeline);
  visit("context", limits.context);
  visit("experts", limits.experts);
  visit("sequence_parallel", limits.sequence_parallel);
  visit("experts_need_sequence_parallel", limits.experts_need_sequence_parallel);
  visit("shard_groups", limits.shard_groups);
  visit("replicas_apart", limits.replicas_apart);
  visit("offload_needs_zero", limits.offload_needs_zero);
  visit("equal_stages", limits.equal_stages);
  visit("named_splits", limits.named_splits);
  visit("recompute_layers", limits.recompute_layers);
  visit("whole_rounds", limits.whole_rounds);
}

std::vector<int> zero_stages(StrictObject& object, std::string_view key, std::vector<int> otherwise) {
  if (!object.has(key)) return otherwise;
  std::vector<int> stages;
  for (const std::int64_t stage : object.integers(key)) {
    if (stage < 0 || stage > 3) object.fail(key, fmt::format("there is no ZeRO stage {}: give some of 0 to 3", stage));
    stages.push_back(static_cast<int>(stage));
  }
  if (stages.empty()) object.fail(key, "a stack without a stage of ZeRO trains nothing: give 0 for none");
  return stages;
}

std::vector<std::string> texts(StrictObject& object, std::string_view key) {
  std::vector<std::string> result;
  if (!object.has(key)) return result;
  for (const nlohmann::json& text : object.raw(key)) {
    if (!text.is_string()) object.fail(key, "an array of names is wanted");
    result.push_back(text.get<std::string>());
  }
  return result;
}

}  // namespace

StackLimits stack_limits_from_json(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  StackLimits limits;
  limits.zero = zero_stages(object, "zero", limits.zero);
  limits.zero_in_pipelines = zero_stages(object, "zero_in_pipelines", limits.zero);
  const std::vector<std::string> recompute = texts(object, "recompute");
  if (!recompute.empty()) limits.recompute.clear();
  for (const std::string& name : recompute) limits.recompute.push_back(recompute_from_name(name));
  for (const std::string& name : texts(object, "schedules")) {
    if (schedule_spelled(name).empty()) object.fail("schedules", fmt::format("there is no schedule \"{}\"", name));
    limits.schedules.emplace_back(schedule_spelled(name));
  }
  for (const std::string& name : texts(object, "context_kinds")) {
    const std::vector<std::string>& known = context_kind_names();
    if (std::ranges::find(known, name) == known.end())
      object.fail("context_kinds", fmt::format("there is no kind \"{}\": give {}", name, fmt::join(known, ", ")));
    limits.context_kinds.push_back(context_kind_from_name(name));
  }
  if (object.has("offload")) limits.offload.clear();
  std::vector<std::string_view> offloads;
  for (const Offload& offload : all_offloads()) offloads.push_back(offload_name(offload));
  for (const std::string& name : texts(object, "offload")) {
    const auto known = std::ranges::find(all_offloads(), name, offload_name);
    if (known == all_offloads().end())
      object.fail("offload", fmt::format("\"{}\" moves nothing to the hosts: give some of {}, or []", name,
                                         fmt::join(offloads, ", ")));
    limits.offload.push_back(*known);
  }
  visit_flags(limits, [&](std::string_view key, bool& value) { value = object.boolean_or(key, value); });
  object.finish();
  return limits;
}

nlohmann::ordered_json to_json(const StackLimits& limits) {
  nlohmann::ordered_json json{{"zero", limits.zero}, {"zero_in_pipelines", limits.zero_in_pipelines}};
  for (const Recompute recompute : limits.recompute) json["recompute"].push_back(recompute_name(recompute));
  json["schedules"] = limits.schedules;
  json["context_kinds"] = nlohmann::ordered_json::array();
  for (const ContextKind kind : limits.context_kinds) json["context_kinds"].push_back(context_kind_name(kind));
  json["offload"] = nlohmann::ordered_json::array();
  for (const Offload& offload : limits.offload) json["offload"].push_back(offload_name(offload));
  visit_flags(limits, [&](std::string_view key, bool value) { json[std::string(key)] = value; });
  return json;
}

}}  // namespace plumb::planner
