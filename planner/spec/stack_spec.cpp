#include "planner/spec/stack_spec.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/spec/fifteen_digits.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/strict_json.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

const std::vector<std::string> kAttentionNames = {"unfused", "triton", "flash2", "flash3", "cudnn"};
const std::vector<std::string> kSelectiveNames = {"attention", "alternate-products", "norms-and-activations"};
const std::vector<std::string> kDispatchNames = {"per-expert", "per-rank"};
const std::vector<std::string> kStageSplitNames = {"even", "ends-as-layers"};
const std::vector<std::string> kGraphNames = {"none", "outside-experts", "iteration"};

template <class Recipe, class Visitor>
void visit_recipe(Recipe& recipe, const std::string& prefix, Visitor&& visit) {
  visit.number((prefix + "gemm_factor").c_str(), recipe.gemm_factor);
  visit.number((prefix + "cast_bytes").c_str(), recipe.cast_bytes);
  visit.flag((prefix + "gathers").c_str(), recipe.gathers);
  visit.flag((prefix + "weight_gathers").c_str(), recipe.weight_gathers);
}

/// Visits every member with its key, so that reading and writing name them once. `Visitor` has one function for each
/// type.
template <class Stack, class Visitor>
void visit_members(Stack& stack, Visitor&& visit) {
  visit.flag("causal_skipped", stack.causal_skipped);
  visit.flag("fused_softmax", stack.fused_softmax);
  visit.count("fused_softmax_rows", stack.fused_softmax_rows);
  visit.flag("fused_bias_dropout", stack.fused_bias_dropout);
  visit.flag("fused_activation", stack.fused_activation);
  visit.flag("fp32_norms", stack.fp32_norms);
  visit.flag("fused_norm", stack.fused_norm);
  visit.flag("fused_cross_entropy", stack.fused_cross_entropy);
  visit.flag("fused_accumulation", stack.fused_accumulation);
  visit.count("vocab_multiple", stack.vocab_multiple);
  visit.flag("early_stop", stack.early_stop);
  visit.number("memory_traffic", stack.memory_traffic);
  visit_recipe(stack.fp8, "fp8_", visit);
  visit.flag("fp8_saved", stack.fp8_saved);
  visit.flag("expert_kernels", stack.expert_kernels);
  visit.flag("weighted_activations", stack.weighted_activations);
  visit.number("expert_half_rows", stack.expert_half_rows);
  visit.share("expert_gemm_share", stack.expert_gemm_share);
  visit.count("narrow_expert_ffn", stack.narrow_expert_ffn);
  visit.flag("fused_expert_bias", stack.fused_expert_bias);
  visit.number("expert_imbalance", stack.expert_imbalance);
  visit.flag("padded_experts", stack.padded_experts);
  visit.share("dispatch_share", stack.dispatch_share);
  visit.flag("repeated_heads", stack.repeated_heads);
  visit.share("tensor_hidden", stack.tensor_hidden);
  visit.flag("async_tensor_gradients", stack.async_tensor_gradients);
  visit.share("expert_hidden", stack.expert_hidden);
  visit.share("data_hidden", stack.data_hidden);
  visit.share("gather_hidden", stack.gather_hidden);
  visit.number("gather_copy_bytes", stack.gather_copy_bytes);
  visit.number("reduce_copy_bytes", stack.reduce_copy_bytes);
  visit.flag("scattered_messages", stack.scattered_messages);
  visit.microseconds("tensor_collective_us", stack.tensor_collective);
  visit.microseconds("tensor_step_us", stack.tensor_step);
  visit.flag("regathered_inputs", stack.regathered_inputs);
  visit.flag("copied_collectives", stack.copied_collectives);
  visit.count("gradient_bytes", stack.gradient_bytes);
  visit.microseconds("kernel_launch_us", stack.kernel_launch);
  visit.number("host_sharpness", stack.host_sharpness);
  visit.count("layer_launches_forward", stack.layer_launches_forward);
  visit.count("layer_launches_backward", stack.layer_launches_backward);
  visit.count("expert_launches", stack.expert_launches);
  visit.flag("waits_at_ends", stack.waits_at_ends);
  visit.microseconds("action_overhead_us", stack.action_overhead);
  visit.number("step_traffic", stack.step_traffic);
  visit.number("logit_bytes", stack.logit_bytes);
  visit.number("embedding_gradient_bytes", stack.embedding_gradient_bytes);
  visit.number("step_bytes", stack.step_bytes);
  visit.number("norm_bytes", stack.norm_bytes);
  visit.number("bucket_mib", stack.bucket_mib);
  visit.number("copied_gradient_bytes", stack.copied_gradient_bytes);
  visit.number("state_bytes", stack.state_bytes);
  visit.number("embedding_outputs", stack.embedding_outputs);
  visit.number("workspace_mib", stack.workspace_mib);
  visit.share("memory_headroom", stack.memory_headroom);
  visit.flag("sharded_masters", stack.sharded_masters);
  visit.flag("replicated_masters", stack.replicated_masters);
  visit.flag("whole_gradients", stack.whole_gradients);
  visit.flag("gathered_logits", stack.gathered_logits);
  visit.flag("tables_stay_gathered", stack.tables_stay_gathered);
  visit.flag("weight_gradients", stack.weight_gradients);
  visit.flag("kept_weight_gradients", stack.kept_weight_gradients);
  visit.flag("kept_outputs", stack.kept_outputs);
  visit.flag("kept_logits", stack.kept_logits);
  visit.flag("score_buffer", stack.score_buffer);
  visit.flag("cached_moments", stack.cached_moments);
  visit.flag("copied_context", stack.copied_context);
  visit.share("offloaded_share", stack.offloaded_share);
}

struct StackReader {
  StrictObject& object;

  void flag(const char* key, bool& value) { value = object.boolean_or(key, value); }
  template <class Integer>
  void count(const char* key, Integer& value) {
    constexpr std::int64_t kLargest = 1 << 20;
    const std::int64_t given = object.non_negative_integer_or(key, value);
    if (given > kLargest) object.fail(key, fmt::format("{} is out of range: give at most {}", given, kLargest));
    value = static_cast<Integer>(given);
  }
  void number(const char* key, double& value) {
    if (object.has(key)) value = object.non_negative_number(key);
  }
  void share(const char* key, double& value) {
    number(key, value);
    if (value > 1) object.fail(key, fmt::format("{} is more than all of it: give a share from 0 to 1", value));
  }
  void microseconds(const char* key, Seconds& value) {
    if (object.has(key)) value = Seconds{object.non_negative_number(key) * kMicro};
  }
};

struct Writer {
  nlohmann::ordered_json& json;

  void flag(const char* key, bool value) const { json[key] = value; }
  void count(const char* key, std::int64_t value) const { json[key] = value; }
  void number(const char* key, double value) const { json[key] = value; }
  void share(const char* key, double value) const { json[key] = value; }
  void microseconds(const char* key, Seconds value) const { json[key] = fifteen_digits(value.count() / kMicro); }
};

}  // namespace

std::string_view attention_kernel_name(AttentionKernel kernel) {
  return kAttentionNames[static_cast<std::size_t>(kernel)];
}

std::int64_t padded_vocab(const StackSpec& stack, std::int64_t vocab, int tensor_parallel) {
  const std::int64_t multiple = std::max<std::int64_t>(1, stack.vocab_multiple) * tensor_parallel;
  return (vocab + multiple - 1) / multiple * multiple;
}

StackSpec stack_from_json(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  StackSpec stack;
  stack.name = object.text("name");
  stack.note = object.text_or("note", "");
  const auto named = [&object](std::string_view key, const std::vector<std::string>& names) {
    return std::ranges::find(names, object.choice(key, names)) - names.begin();
  };
  if (object.has("attention")) stack.attention = static_cast<AttentionKernel>(named("attention", kAttentionNames));
  if (object.has("context")) stack.context = context_kind_from_name(object.choice("context", context_kind_names()));
  if (object.has("selective")) stack.selective = static_cast<SelectiveKind>(named("selective", kSelectiveNames));
  if (object.has("dispatch")) stack.dispatch = static_cast<ExpertDispatch>(named("dispatch", kDispatchNames));
  if (object.has("stage_split")) stack.stage_split = static_cast<StageSplit>(named("stage_split", kStageSplitNames));
  if (object.has("graphs")) stack.graphs = static_cast<GraphScope>(named("graphs", kGraphNames));
  visit_members(stack, StackReader{object});
  for (const auto& [key, value] :
       {std::pair{"expert_gemm_share", stack.expert_gemm_share}, std::pair{"dispatch_share", stack.dispatch_share}}) {
    if (value == 0) object.fail(key, "a rate of 0 never ends: give a share above 0");
  }
  if (stack.expert_imbalance < 1) {
    object.fail("expert_imbalance", fmt::format("{} is below 1: the fullest rank has at least the mean, give 1 or more",
                                                stack.expert_imbalance));
  }
  stack.fp8_recipe = object.text_or("fp8_recipe", stack.fp8_recipe);
  if (object.has("fp8_recipes")) {
    StrictObject recipes = object.object("fp8_recipes");
    for (const auto& [name, value] : object.raw("fp8_recipes").items()) {
      StrictObject recipe = recipes.object(name);
      visit_recipe(stack.fp8_recipes[name], "", StackReader{recipe});
      recipe.finish();
    }
  }
  if (object.has("can")) stack.can = stack_limits_from_json(object.raw("can"), object.object("can").place());
  if (object.has("sources")) {
    StrictObject sources = object.object("sources");
    for (const auto& [key, value] : object.raw("sources").items()) stack.sources[key] = sources.text(key);
  }
  object.finish();
  return stack;
}

StackSpec with_fp8_recipe(StackSpec stack, const std::string& recipe) {
  const auto found = stack.fp8_recipes.find(recipe);
  if (found == stack.fp8_recipes.end()) {
    std::vector<std::string> names;
    for (const auto& [name, figures] : stack.fp8_recipes) names.push_back(name);
    throw SpecError(
        names.empty()
            ? fmt::format("stack {} has one way to quantize, and no recipe \"{}\": leave it out", stack.name, recipe)
            : fmt::format("stack {} has no recipe \"{}\": give {}", stack.name, recipe, fmt::join(names, ", ")));
  }
  stack.fp8 = found->second;
  stack.fp8_recipe = recipe;
  return stack;
}

StackSpec parse_stack(std::string_view text, const std::string& file) {
  return stack_from_json(parse_file(FileForm::kStack, text, file), file);
}

nlohmann::ordered_json to_json(const StackSpec& stack) {
  nlohmann::ordered_json json{{"name", stack.name},
                              {"note", stack.note},
                              {"attention", attention_kernel_name(stack.attention)},
                              {"context", context_kind_name(stack.context)},
                              {"selective", kSelectiveNames[static_cast<std::size_t>(stack.selective)]},
                              {"dispatch", kDispatchNames[static_cast<std::size_t>(stack.dispatch)]},
                              {"stage_split", kStageSplitNames[static_cast<std::size_t>(stack.stage_split)]},
                              {"graphs", kGraphNames[static_cast<std::size_t>(stack.graphs)]}};
  visit_members(stack, Writer{json});
  if (!stack.fp8_recipe.empty()) json["fp8_recipe"] = stack.fp8_recipe;
  json["fp8_recipes"] = nlohmann::ordered_json::object();
  for (const auto& [name, recipe] : stack.fp8_recipes) visit_recipe(recipe, "", Writer{json["fp8_recipes"][name]});
  json["can"] = to_json(stack.can);
  json["sources"] = stack.sources;
  return json;
}

}}  // namespace plumb::planner
