#include "planner/score/row_fields.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "planner/score/source_mapping.h"
#include "schedules/forms/whole_number.h"
#include "schedules/generators/spellings.h"
#include "schedules/pattern.h"
#include "schedules/spelling.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

bool has(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

void put_if_missing(json& model, std::string_view key, const json& value) {
  if (!model.contains(key) || model[std::string(key)].is_null()) model[std::string(key)] = value;
}

/// Keys that the schema names otherwise than the model's form.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kAliases = {
    {{"seq", "sequence"},
     {"layers_used", "layers"},
     {"tied", "tied_embeddings"},
     {"topk", "experts_per_token"},
     {"moe_ffn", "expert_ffn"},
     {"q_lora", "query_rank"},
     {"kv_lora", "kv_rank"},
     {"v_dim", "value_size"},
     {"head_dim", "head_size"},
     {"rotary", "rotary_size"},
     {"parallel_block", "parallel_residual"}}};

constexpr std::array<std::string_view, 30> kModelKeys = {"layers",          "hidden",
                                                         "heads",           "kv_heads",
                                                         "head_size",       "ffn",
                                                         "vocab",           "sequence",
                                                         "positions",       "norm",
                                                         "norm_epsilon",    "mlp",
                                                         "exact_gelu",      "qkv_bias",
                                                         "linear_bias",     "parallel_residual",
                                                         "rotary_size",     "rope_theta",
                                                         "window",          "full_attention_every",
                                                         "tied_embeddings", "dropout",
                                                         "experts",         "experts_per_token",
                                                         "expert_ffn",      "shared_ffn",
                                                         "dense_layers",    "query_rank",
                                                         "kv_rank",         "query_key_norms"};

/// Returns `fields` by the names of the model's form, without the keys that it does not have.
json renamed(const json& fields) {
  json model = json::object();
  for (const auto& [key, value] : fields.items()) {
    if (value.is_null()) continue;
    const auto alias = std::ranges::find(kAliases, key, &std::pair<std::string_view, std::string_view>::first);
    const std::string name(alias == kAliases.end() ? std::string_view(key) : alias->second);
    if (name == "value_size" || std::ranges::find(kModelKeys, name) != kModelKeys.end()) model[name] = value;
  }
  const json& gated = value_at(fields, "gated_mlp");
  if (gated.is_boolean()) put_if_missing(model, "mlp", gated == json(true) ? "swiglu" : "gelu");
  return model;
}

/// Returns a model's name without the word "moe" and without the text that `extra` finds.
std::string without(std::string_view name, const Pattern& extra) {
  static const Pattern kMoe("moe");
  return letters_and_digits(extra.removed_from(kMoe.removed_from(name)));
}

/// Returns the preset with that name in any spelling; without the active parameters ("Qwen3 MoE 30B" is
/// "qwen3-30b-a3b"); without the total where the family has one size ("DeepSeek V3 671B", but not "GPT-2 1.5B").
const json* preset_named(const std::map<std::string, json>& models, std::string_view name) {
  static const Pattern kActive(R"([-_ ]a\d+b$)");
  static const Pattern kTotal(R"([-_ ]\d+(\.\d+)?[bt]$)");
  const std::string wanted = letters_and_digits(name);
  const std::string shorter = without(name, kActive);
  const std::string family = without(name, kTotal);
  if (shorter.empty() || family.empty()) return nullptr;
  const json* active = nullptr;
  const json* total = nullptr;
  int relatives = 0;
  for (const auto& [preset, model] : models) {
    if (letters_and_digits(preset) == wanted) return &model;
    if (without(preset, kActive) == shorter) active = &model;
    if (letters_and_digits(preset) == family) total = &model;
    relatives += letters_and_digits(preset).starts_with(family) ? 1 : 0;
  }
  if (active != nullptr) return active;
  return relatives == 1 ? total : nullptr;
}

}  // namespace

std::optional<std::int64_t> integer_at(const json& row, std::string_view path) {
  const json& value = value_at(row, path);
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  constexpr double kLargest = 9e15;  // whole numbers up to here are exact
  const double number = value.get<double>();
  if (!(std::abs(number) < kLargest) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::string text_at(const json& row, std::string_view path) {
  const json& value = value_at(row, path);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<Precision> precision_in(std::string_view text) {
  const std::string name = lower_case(text);
  if (has(name, "nvfp4")) return Precision::kNvfp4;
  if (has(name, "fp4")) return std::nullopt;  // MXFP4 and others
  if (has(name, "fp8") || has(name, "float8")) return Precision::kFp8;
  if (has(name, "fp16")) return Precision::kFp16;
  if (has(name, "bf16")) return Precision::kBf16;
  if (name.starts_with("amp")) return Precision::kBf16;  // automatic mixed precision
  if (has(name, "tf32")) return Precision::kTf32;
  if (has(name, "fp32")) return Precision::kFp32;
  return std::nullopt;
}

std::optional<Recompute> recompute_in(std::string_view text) {
  const std::string name = lower_case(text);
  if (name.starts_with("none")) return Recompute::kNone;
  if (name.starts_with("selective") || has(name, "sac")) return Recompute::kSelective;
  if (name.starts_with("full")) return Recompute::kFull;
  return std::nullopt;
}

std::string schedule_in(std::string_view text, int chunks) {
  const std::string name = lower_case(text);
  if (name.empty() || name == "none" || name == "1f1b") return chunks > 1 ? "interleaved" : "1f1b";
  if (has(name, "interleaved") || name.starts_with("1f1b-i")) return "interleaved";
  if (name.starts_with("zb-1p") || name.starts_with("zb-h1")) return "zb-h1";
  if (name.starts_with("zb-2p") || name.starts_with("zb-h2")) return "zb-h2";
  return std::string(schedule_spelled(name));
}

std::optional<int> zero_stage_in(const json& row) {
  for (const char* key : {"zero", "zero_equiv"}) {
    if (const auto stage = integer_at(row, key)) return static_cast<int>(std::clamp<std::int64_t>(*stage, 0, 3));
  }
  const std::string zero = lower_case(text_at(row, "zero"));
  if (has(zero, "distributed optimizer")) return 1;
  if (has(zero, "fsdp")) return has(zero, "not resharded") ? 2 : 3;
  if (const auto digit = zero.find_first_of("0123"); digit != std::string::npos) return zero[digit] - '0';
  const std::string sharding = lower_case(text_at(row, "sharding"));
  if (has(sharding, "full_shard") || has(sharding, "hybrid_shard") || has(sharding, "fsdp")) return 3;
  if (has(sharding, "shard_grad_op")) return 2;
  if (integer_at(row, "fsdp").value_or(0) > 0 || value_at(row, "fsdp") == json(true)) return 3;
  const json& distributed = value_at(row, "dist_optimizer");
  if (distributed.is_boolean()) return distributed == json(true) ? 1 : 0;
  return std::nullopt;
}

std::string device_preset_in(std::string_view hardware) {
  const std::string name = lower_case(hardware);
  for (const char* other : {"gb200", "gb300", "gh200"}) {
    if (has(name, other)) return {};
  }
  for (const char* device : {"h100", "h200", "b200", "a100"}) {
    if (has(name, device)) return device;
  }
  return {};
}

std::optional<double> memory_gb_in(std::string_view hardware) {
  static const Pattern kMemory(R"((?-i)(?:^|[^\d.])(\d{1,3}) ?Gi?B(?:$|/$|/[^s]|[^/\w]))");  // a rate is no memory
  const std::vector<std::string> found = kMemory.groups_in(hardware);
  if (found.empty()) return std::nullopt;
  return std::stod(found[1]);
}

std::optional<PrintedNetwork> network_in(std::string_view hardware, int devices) {
  constexpr double kGigabit = 1e9 / 8;
  static const Pattern kCount(R"((\d+)\s*[x*]\s*(\d+)\s*G(b|bps|bit)?(/s)?\b)");
  if (const std::vector<std::string> found = kCount.groups_in(hardware); !found.empty()) {
    const auto nics = whole_number<int>(found[1]);
    const auto gigabits = whole_number<double>(found[2]);
    if (nics && gigabits) return PrintedNetwork{.nics = *nics, .node_bytes_per_second = *nics * *gigabits * kGigabit};
  }
  static const Pattern kRate(R"((\d+)\s*Gb(ps|it)?(/s)?\b[^,;]*\bper (GPU|device|node))");
  const std::vector<std::string> found = kRate.groups_in(hardware);
  if (found.empty()) return std::nullopt;
  const double rate = whole_number<double>(found[1]).value_or(0) * kGigabit;
  if (rate == 0) return std::nullopt;
  if (lower_case(found[4]) == "node") return PrintedNetwork{.node_bytes_per_second = rate};
  return PrintedNetwork{.nics = devices, .node_bytes_per_second = devices * rate};
}

json model_fields(const json& row, const json& dims, const std::map<std::string, json>& models) {
  const json& printed = value_at(row, "model");
  json model = printed.is_object() ? renamed(printed) : json::object();
  const auto take = [&model](const json& fields) {
    for (const auto& [key, value] : fields.items()) put_if_missing(model, key, value);
  };
  const std::string name = text_at(row, "model.name");
  if (const json& known = value_at(dims, text_at(row, "model.dims_key")); !known.is_null()) take(renamed(known));
  if (!model.contains("hidden")) {
    if (const json* preset = preset_named(models, name)) take(*preset);
  }
  model["name"] = name.empty() ? "published model" : name;

  put_if_missing(model, "mlp", "swiglu");
  const bool gated = model["mlp"] == "swiglu";
  put_if_missing(model, "norm", gated ? "rms" : "layer");
  put_if_missing(model, "qkv_bias", !gated);
  put_if_missing(model, "linear_bias", !gated);
  put_if_missing(model, "tied_embeddings", !gated);
  if (gated) return model;
  put_if_missing(model, "rotary_size", 0);
  if (model.contains("sequence") && value_at(printed, "learned_pos") != json(false)) {
    put_if_missing(model, "positions", model["sequence"]);
  }
  if (const auto hidden = integer_at(model, "hidden"); hidden && *hidden < (std::int64_t{1} << 32)) {
    put_if_missing(model, "ffn", 4 * *hidden);
  }
  return model;
}

}}  // namespace plumb::planner
