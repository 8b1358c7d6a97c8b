// The JSON form of a model (model_spec.h): reading, writing, and the figures that are shown beside its sizes.

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/spec/model_spec.h"
#include "planner/spec/state_mixer_json.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/strict_json.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

// These limits are far beyond any model, and small enough that bytes of everything stay below 2^63.
constexpr std::int64_t kLargestLayers = 1 << 14;
constexpr std::int64_t kLargestWidth = 1 << 20;
constexpr std::int64_t kLargestTable = 1 << 24;

std::int64_t size_of(StrictObject& object, std::string_view key, std::int64_t smallest, std::int64_t largest) {
  const std::int64_t size = smallest > 0 ? object.positive_integer(key) : object.non_negative_integer(key);
  if (size > largest) object.fail(key, fmt::format("{} is out of range: give at most {}", size, largest));
  return size;
}

std::int64_t width(StrictObject& object, std::string_view key) {
  return size_of(object, key, 1, kLargestWidth);
}
std::int64_t width_or(StrictObject& object, std::string_view key, std::int64_t fallback) {
  return object.has(key) ? width(object, key) : fallback;
}

void read_expert_groups(StrictObject& object, ModelSpec& model) {
  model.expert_groups = width_or(object, "expert_groups", 1);
  model.groups_per_token = width_or(object, "groups_per_token", model.expert_groups);
  if (model.experts % model.expert_groups != 0) {
    object.fail("expert_groups",
                fmt::format("{} groups do not divide {} experts: give a divisor", model.expert_groups, model.experts));
  }
  const std::int64_t each = model.experts / model.expert_groups;
  const std::int64_t needed = (model.experts_per_token + each - 1) / each;
  if (model.groups_per_token > model.expert_groups || model.groups_per_token < needed) {
    object.fail("groups_per_token", fmt::format("{} picks of a token come from {} to {} of the groups: give as many",
                                                model.experts_per_token, needed, model.expert_groups));
  }
  if (model.groups_per_token == model.expert_groups) model.expert_groups = model.groups_per_token = 1;  // no limit
}

void read_experts(StrictObject& object, ModelSpec& model) {
  model.experts = size_of(object, "experts", 0, kLargestWidth);
  for (const std::string_view key :
       {"experts_per_token", "expert_groups", "groups_per_token", "expert_ffn", "shared_ffn", "renormalised",
        "capacity_factor", "balance_loss", "router", "router_bias", "selection_bias", "expert_bias"})
    object.has(key);
  if (model.pattern.empty()) object.has("dense_layers"), object.has("experts_every");
  if (model.experts == 0) return;
  model.experts_per_token = width(object, "experts_per_token");
  model.expert_ffn = width(object, "expert_ffn");
  model.shared_ffn = object.has("shared_ffn") ? size_of(object, "shared_ffn", 0, kLargestWidth) : 0;
  if (model.pattern.empty()) {
    model.dense_layers = object.non_negative_integer_or("dense_layers", 0);
    model.experts_every = width_or(object, "experts_every", 1);
  }
  model.renormalised = object.boolean_or("renormalised", true);
  if (object.has("capacity_factor")) model.capacity_factor = object.non_negative_number("capacity_factor");
  if (object.has("balance_loss")) model.balance_loss = object.non_negative_number("balance_loss");
  if (object.has("router") && object.choice("router", {"softmax", "sigmoid"}) == "sigmoid")
    model.router = RouterKind::kSigmoid;
  model.router_bias = object.boolean_or("router_bias", false);
  model.selection_bias = object.boolean_or("selection_bias", false);
  model.expert_bias = object.boolean_or("expert_bias", false);
  if (model.experts_per_token > model.experts) {
    object.fail("experts_per_token", fmt::format("a token cannot pass {} of {} experts: give at most {}",
                                                 model.experts_per_token, model.experts, model.experts));
  }
  read_expert_groups(object, model);
  if (model.layers / model.experts_every == model.dense_layers / model.experts_every) {
    object.fail(
        model.experts_every > 1 ? "experts_every" : "dense_layers",
        fmt::format("{} dense layers, and a period of {}, leave none of the {} layers for the experts: give less",
                    model.dense_layers, model.experts_every, model.layers));
  }
}

void read_latent_attention(StrictObject& object, ModelSpec& model) {
  model.kv_rank = object.has("kv_rank") ? size_of(object, "kv_rank", 0, kLargestWidth) : 0;
  for (const std::string_view key : {"query_rank", "value_size"}) object.has(key);
  if (model.kv_rank == 0) return;
  model.query_rank = object.has("query_rank") ? size_of(object, "query_rank", 0, kLargestWidth) : 0;
  model.value_size = width(object, "value_size");
  if (model.query_key_norms != QueryKeyNorms::kNone)
    object.fail("query_key_norms",
                "latent attention has norms of its own behind its compressed queries and keys: leave this out");
}

constexpr const char* kQueryKeyNorms = "query_key_norms";
constexpr std::array<std::string_view, 3> kNormsOfHeads = {"none", "each_head", "all_heads"};  // [QueryKeyNorms]

/// Keys that `plumb models` shows beside the sizes; the last two belong to graphs.
constexpr const char* kParameters = "parameters";
constexpr const char* kForward = "forward_gflops";
constexpr const char* kNodes = "layers";
constexpr const char* kPattern = "pattern";

ModelSpec graph_model(const nlohmann::json& json, const std::string& place) {
  ModelSpec model{.graph = layer_graph_from_json(json, place)};
  StrictObject object(json, place);
  model.name = object.text("name");
  model.source = object.text_or("source", "");
  model.layers = std::ssize(graph_nodes(*model.graph));
  model.sequence = has_sequence(model) ? model.graph->sizes.at("sequence") : 1;
  return model;
}

/// Reads what all language models have.
void read_frame(StrictObject& object, ModelSpec& model) {
  model.name = object.text("name");
  model.source = object.text_or("source", "");
  model.layers = size_of(object, "layers", 1, kLargestLayers);
  model.hidden = width(object, "hidden");
  model.vocab = size_of(object, "vocab", 1, kLargestTable);
  model.sequence = object.non_negative_integer_or("sequence", 0);
  if (object.has("norm_epsilon")) model.norm_epsilon = object.positive_number("norm_epsilon");
  model.tied_embeddings = object.boolean_or("tied_embeddings", false);
}

/// Reads the period of the layers' kinds.
void read_pattern(StrictObject& object, const std::string& place, ModelSpec& model) {
  model.pattern = layer_pattern(object.text(kPattern), place + ", " + kPattern);
  const std::int64_t period = std::ssize(model.pattern);
  if (model.layers % period != 0)
    object.fail(kPattern, fmt::format("its {} layers do not divide the {} layers: give a period that does, or all",
                                      period, model.layers));
  if (has_part(model, &LayerParts::states) != (model.states.index() > 0))
    object.fail(kPattern, model.states.index() > 0
                              ? "no layer has the state mixer: give one an M, or leave the mixer out"
                              : "M is a state mixer: give its sizes under mamba2, mamba or delta_net");
}

void read_attention(StrictObject& object, ModelSpec& model) {
  model.heads = width(object, "heads");
  model.kv_heads = width_or(object, "kv_heads", model.heads);
  if (model.heads % model.kv_heads != 0) {
    object.fail("kv_heads", fmt::format("{} does not divide the {} heads: each group of heads shares one",
                                        model.kv_heads, model.heads));
  }
  if (!object.has("head_size") && model.hidden % model.heads != 0) {
    object.fail("head_size", fmt::format("this key is missing, and {} heads do not divide a hidden size of {}: add it",
                                         model.heads, model.hidden));
  }
  model.head_size = width_or(object, "head_size", model.hidden / model.heads);
  model.output_gate = object.boolean_or("output_gate", false);
  if (object.has(kQueryKeyNorms)) {
    const std::string norms = object.choice(kQueryKeyNorms, {kNormsOfHeads.begin(), kNormsOfHeads.end()});
    const auto known = std::ranges::find(kNormsOfHeads, norms);
    model.query_key_norms = static_cast<QueryKeyNorms>(known - kNormsOfHeads.begin());
  }
}

/// Reads the positions that attention sees, and what it sees of the past.
void read_positions(StrictObject& object, ModelSpec& model) {
  model.rotary_size = object.non_negative_integer_or("rotary_size", model.positions > 0 ? 0 : model.head_size);
  if (model.rotary_size > model.head_size || model.rotary_size % 2 != 0) {
    object.fail("rotary_size", fmt::format("{} is no even number of channels of a head of {}: give 0 to {}",
                                           model.rotary_size, model.head_size, model.head_size / 2 * 2));
  }
  if (object.has("rope_theta")) model.rope_theta = object.positive_number("rope_theta");
  model.window = object.non_negative_integer_or("window", 0);
  model.full_attention_every = object.non_negative_integer_or("full_attention_every", 0);
  if (model.full_attention_every > 0 && model.window == 0) {
    object.fail("full_attention_every", "all layers see the whole past without a window: give one, or leave this out");
  }
  model.sinks = object.boolean_or("sinks", false);
  if (object.has("attention_softcap")) model.attention_softcap = object.non_negative_number("attention_softcap");
}

/// Reads what the parts of all blocks have in common.
void read_blocks(StrictObject& object, ModelSpec& model) {
  model.positions = object.has("positions") ? size_of(object, "positions", 0, kLargestTable) : 0;
  if (object.has("norm")) {
    model.norm = object.choice("norm", {"rms", "layer"}) == "rms" ? NormKind::kRmsNorm : NormKind::kLayerNorm;
  }
  if (object.has("mlp")) {
    model.mlp = object.choice("mlp", {"swiglu", "gelu"}) == "gelu" ? MlpKind::kGelu : MlpKind::kSwiglu;
  }
  model.exact_gelu = object.boolean_or("exact_gelu", false);
  model.qkv_bias = object.boolean_or("qkv_bias", false);
  model.linear_bias = object.boolean_or("linear_bias", false);
  model.parallel_residual = object.boolean_or("parallel_residual", false);
}

ModelSpec decoder_model(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  ModelSpec model;
  read_frame(object, model);
  model.states = state_mixer_from_json(json, object, place);
  if (object.has(kPattern)) read_pattern(object, place, model);
  if (model.states.index() > 0 && model.pattern.empty()) {
    object.finish();
    return model;
  }
  const bool has_attention = has_part(model, &LayerParts::attention);
  if (has_attention) read_attention(object, model);
  if (model.pattern.empty() || has_part(model, &LayerParts::mlp)) model.ffn = width(object, "ffn");
  read_blocks(object, model);
  if (has_attention) read_positions(object, model);
  if (object.has("logit_softcap")) model.logit_softcap = object.non_negative_number("logit_softcap");
  if (object.has("dropout")) model.dropout = object.non_negative_number("dropout");
  if (model.dropout >= 1) object.fail("dropout", "nothing is left of a tensor: give a share below 1");
  if (object.has("experts")) read_experts(object, model);
  if (!model.pattern.empty() && has_part(model, &LayerParts::experts) != (model.experts > 0))
    object.fail(kPattern, model.experts > 0 ? "no layer has the experts: give one an E, or leave experts out"
                                            : "E is a layer of experts: give their number under experts");
  if (object.has("mtp_modules")) model.mtp_modules = size_of(object, "mtp_modules", 0, kLargestLayers);
  if (has_attention && object.has("kv_rank")) read_latent_attention(object, model);
  object.finish();
  return model;
}

/// Returns the form of a model whose layers are a state mixer alone.
nlohmann::ordered_json states_json(const ModelSpec& model) {
  nlohmann::ordered_json json{{"name", model.name},
                              {"source", model.source},
                              {"layers", model.layers},
                              {"hidden", model.hidden},
                              {"vocab", model.vocab},
                              {"sequence", model.sequence},
                              {"norm_epsilon", model.norm_epsilon},
                              {"tied_embeddings", model.tied_embeddings}};
  add_state_mixer(json, model.states);
  return json;
}

void add_experts(nlohmann::ordered_json& json, const ModelSpec& model) {
  json["experts"] = model.experts;
  json["experts_per_token"] = model.experts_per_token;
  if (model.groups_per_token < model.expert_groups) {
    json["expert_groups"] = model.expert_groups;
    json["groups_per_token"] = model.groups_per_token;
  }
  json["expert_ffn"] = model.expert_ffn;
  json["shared_ffn"] = model.shared_ffn;
  if (model.pattern.empty()) json["dense_layers"] = model.dense_layers;
  if (model.experts_every > 1) json["experts_every"] = model.experts_every;
  json["renormalised"] = model.renormalised;
  if (model.capacity_factor > 0) json["capacity_factor"] = model.capacity_factor;
  if (model.balance_loss > 0) json["balance_loss"] = model.balance_loss;
  if (model.router == RouterKind::kSigmoid) json["router"] = "sigmoid";
  if (model.router_bias) json["router_bias"] = true;
  if (model.selection_bias) json["selection_bias"] = true;
  if (model.expert_bias) json["expert_bias"] = true;
}

}  // namespace

nlohmann::ordered_json shown_figures(const ModelSpec& model) {
  nlohmann::ordered_json figures{{kParameters, model_parameter_count(model)}};
  if (!model.graph) return figures;
  const std::vector<GraphNode> nodes = graph_nodes(*model.graph);
  figures[kForward] = forward_flops(nodes) / kGiga;
  for (const GraphNode& node : nodes) {
    figures[kNodes].push_back({{"name", node.name},
                               {"op", node.op},
                               {"output", node.shape},
                               {kParameters, parameter_count(node)},
                               {kForward, forward_flops(node) / kGiga}});
  }
  return figures;
}

ModelSpec model_from_json(const nlohmann::json& json, const std::string& place) {
  const bool is_graph = is_layer_graph(json);
  nlohmann::json shown = nlohmann::json::object();
  nlohmann::json sizes = json;
  const auto take = [&](const char* key) {
    if (!sizes.is_object() || !sizes.contains(key)) return;
    shown[key] = sizes[key];
    sizes.erase(key);
  };
  take(kParameters);
  if (is_graph) take(kForward), take(kNodes);
  ModelSpec model = is_graph ? graph_model(sizes, place) : decoder_model(sizes, place);
  if (shown.empty()) return model;
  const nlohmann::json figures = shown_figures(model);
  for (const auto& [key, value] : shown.items()) {
    if (figures.contains(key) && figures[key] == value) continue;
    StrictObject(json, place).fail(key, "this follows from the sizes, and they give another: leave the key out");
  }
  return model;
}

ModelSpec parse_model(std::string_view text, const std::string& file) {
  return model_from_json(parse_file(FileForm::kModel, text, file), file);
}

nlohmann::ordered_json to_json(const ModelSpec& model) {
  if (model.graph) return nlohmann::ordered_json::parse(model.graph->definition);
  if (model.states.index() > 0 && model.pattern.empty()) return states_json(model);
  const bool attends = has_part(model, &LayerParts::attention);
  nlohmann::ordered_json json{
      {"name", model.name}, {"source", model.source}, {"layers", model.layers}, {"hidden", model.hidden}};
  if (attends) {
    json["heads"] = model.heads;
    json["kv_heads"] = model.kv_heads;
    json["head_size"] = model.head_size;
  }
  if (model.ffn > 0) json["ffn"] = model.ffn;
  json["vocab"] = model.vocab;
  json["sequence"] = model.sequence;
  json["positions"] = model.positions;
  json["norm"] = model.norm == NormKind::kRmsNorm ? "rms" : "layer";
  json["norm_epsilon"] = model.norm_epsilon;
  json["mlp"] = model.mlp == MlpKind::kSwiglu ? "swiglu" : "gelu";
  json["exact_gelu"] = model.exact_gelu;
  json["qkv_bias"] = model.qkv_bias;
  json["linear_bias"] = model.linear_bias;
  json["parallel_residual"] = model.parallel_residual;
  if (attends) {
    json["rotary_size"] = model.rotary_size;
    json["rope_theta"] = model.rope_theta;
    json["window"] = model.window;
  }
  json["tied_embeddings"] = model.tied_embeddings;
  if (!model.pattern.empty()) json[kPattern] = layer_pattern_text(model.pattern);
  add_state_mixer(json, model.states);
  if (model.output_gate) json["output_gate"] = true;
  if (model.query_key_norms != QueryKeyNorms::kNone)
    json[kQueryKeyNorms] = kNormsOfHeads[static_cast<std::size_t>(model.query_key_norms)];
  if (model.full_attention_every > 0) json["full_attention_every"] = model.full_attention_every;
  if (model.sinks) json["sinks"] = true;
  if (model.attention_softcap > 0) json["attention_softcap"] = model.attention_softcap;
  if (model.logit_softcap > 0) json["logit_softcap"] = model.logit_softcap;
  if (model.dropout > 0) json["dropout"] = model.dropout;
  if (model.mtp_modules > 0) json["mtp_modules"] = model.mtp_modules;
  if (model.experts > 0) add_experts(json, model);
  if (model.kv_rank > 0) {
    json["kv_rank"] = model.kv_rank;
    json["query_rank"] = model.query_rank;
    json["value_size"] = model.value_size;
  }
  return json;
}

}}  // namespace plumb::planner
