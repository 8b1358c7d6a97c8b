#include "planner/score/row_spelling.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "planner/score/row_fields.h"
#include "planner/score/source_mapping.h"
#include "schedules/forms/whole_number.h"
#include "schedules/limits.h"
#include "schedules/pattern.h"
#include "schedules/spelling.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

/// Other spellings in lower-case letters and digits only, and the schema's names.
constexpr std::array<Spelling, 51> kRow = {{{"numgpus", "gpus"},
                                            {"ngpus", "gpus"},
                                            {"numdevices", "gpus"},
                                            {"worldsize", "gpus"},
                                            {"devicespernode", "gpus_per_node"},
                                            {"nprocpernode", "gpus_per_node"},
                                            {"numnodes", "nodes"},
                                            {"nnodes", "nodes"},
                                            {"tensorparallel", "tp"},
                                            {"tensorparallelsize", "tp"},
                                            {"tensormodelparallelsize", "tp"},
                                            {"tpsize", "tp"},
                                            {"pipelineparallel", "pp"},
                                            {"pipelineparallelsize", "pp"},
                                            {"pipelinemodelparallelsize", "pp"},
                                            {"ppsize", "pp"},
                                            {"dataparallel", "dp"},
                                            {"dataparallelsize", "dp"},
                                            {"dpsize", "dp"},
                                            {"contextparallel", "cp"},
                                            {"contextparallelsize", "cp"},
                                            {"cpsize", "cp"},
                                            {"expertparallel", "ep"},
                                            {"expertparallelsize", "ep"},
                                            {"expertmodelparallelsize", "ep"},
                                            {"epsize", "ep"},
                                            {"vp", "vpp"},
                                            {"vppsize", "vpp"},
                                            {"virtualpipelineparallelsize", "vpp"},
                                            {"virtualpipelinemodelparallelsize", "vpp"},
                                            {"microbatchsize", "mbs"},
                                            {"microbatch", "mbs"},
                                            {"devicebatchsize", "mbs"},
                                            {"localbatchsize", "mbs"},
                                            {"globalbatchsize", "gbs"},
                                            {"globalbatch", "gbs"},
                                            {"gradaccum", "ga"},
                                            {"gradientaccumulation", "ga"},
                                            {"gradientaccumulationsteps", "ga"},
                                            {"nummicrobatches", "n_microbatches"},
                                            {"tokensperstep", "gbs_tokens"},
                                            {"globalbatchtokens", "gbs_tokens"},
                                            {"dtype", "precision"},
                                            {"zerostage", "zero"},
                                            {"shardingstrategy", "sharding"},
                                            {"activationcheckpointing", "recompute"},
                                            {"activationrecomputation", "recompute"},
                                            {"useflashattn", "flash_attention"},
                                            {"usedistributedoptimizer", "dist_optimizer"},
                                            {"gpu", "hardware"},
                                            {"accelerator", "hardware"}}};

constexpr std::array<Spelling, 27> kModel = {{{"numlayers", "layers"},
                                              {"nlayers", "layers"},
                                              {"numhiddenlayers", "layers"},
                                              {"hiddensize", "hidden"},
                                              {"dmodel", "hidden"},
                                              {"numheads", "heads"},
                                              {"nheads", "heads"},
                                              {"numattentionheads", "heads"},
                                              {"numkeyvalueheads", "kv_heads"},
                                              {"numkvheads", "kv_heads"},
                                              {"nkvheads", "kv_heads"},
                                              {"numquerygroups", "kv_heads"},
                                              {"ffnhiddensize", "ffn"},
                                              {"intermediatesize", "ffn"},
                                              {"vocabsize", "vocab"},
                                              {"sequence", "seq"},
                                              {"seqlen", "seq"},
                                              {"seqlength", "seq"},
                                              {"sequencelength", "seq"},
                                              {"maxseqlen", "seq"},
                                              {"swiglu", "gated_mlp"},
                                              {"tiewordembeddings", "tied_embeddings"},
                                              {"numexperts", "experts"},
                                              {"numlocalexperts", "experts"},
                                              {"numexpertspertok", "topk"},
                                              {"moeroutertopk", "topk"},
                                              {"moeintermediatesize", "moe_ffn"}}};

constexpr std::array<Spelling, 31> kMeasured = {{{"steptime", "step_time_s"},
                                                 {"iterationtime", "step_time_s"},
                                                 {"iterationtimes", "step_time_s"},
                                                 {"itertimes", "step_time_s"},
                                                 {"timeperstep", "step_time_s"},
                                                 {"timepersteps", "step_time_s"},
                                                 {"secondsperstep", "step_time_s"},
                                                 {"secondsperiteration", "step_time_s"},
                                                 {"iterationtimems", "step_time_ms"},
                                                 {"elapsedtimeperiterationms", "step_time_ms"},
                                                 {"tokenspersec", "tokens_per_s"},
                                                 {"tokenspersecond", "tokens_per_s"},
                                                 {"tokenss", "tokens_per_s"},
                                                 {"tokenspersecpergpu", "tokens_per_s_per_gpu"},
                                                 {"tokenspersecondpergpu", "tokens_per_s_per_gpu"},
                                                 {"tokenspergpupersecond", "tokens_per_s_per_gpu"},
                                                 {"tokenssgpu", "tokens_per_s_per_gpu"},
                                                 {"tokenssecgpu", "tokens_per_s_per_gpu"},
                                                 {"tgs", "tokens_per_s_per_gpu"},
                                                 {"samplespersec", "samples_per_s"},
                                                 {"samplespersecond", "samples_per_s"},
                                                 {"sequencespers", "samples_per_s"},
                                                 {"sequencespersecond", "samples_per_s"},
                                                 {"tflopsgpu", "tflops_per_gpu"},
                                                 {"tflopspersecpergpu", "tflops_per_gpu"},
                                                 {"modeltflopspergpu", "tflops_per_gpu"},
                                                 {"petaflops", "pflops"},
                                                 {"mfupercent", "mfu_pct"},
                                                 {"peakmemorygb", "peak_mem_gb"},
                                                 {"peakmemorygib", "peak_mem_gib"},
                                                 {"maxmemoryallocatedgb", "peak_mem_gb"}}};

/// Keys that the schema has under `measured` and that kMeasured does not lead to.
constexpr std::array<std::string_view, 8> kMeasuredToo = {
    "samples_per_gpu_s", "seq_per_s", "peak_mem_mb", "peak_mem_mib", "peak_mem_bytes", "mfu", "days", "oom"};

/// Keys that are numbers in the schema.
constexpr std::array<std::string_view, 16> kCounts = {
    "gpus", "gpus_per_node", "nodes", "tp",  "pp", "dp",         "cp",   "ep",
    "etp",  "vpp",           "mbs",   "gbs", "ga", "gbs_tokens", "zero", "n_microbatches"};

/// Reads "1,024" as 1024 and "3.5" as 3.5; nothing for a text that is no number as a whole.
std::optional<json> number_in(std::string text) {
  std::erase(text, ',');
  const auto first = text.find_first_not_of(' ');
  if (first == std::string::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(' ') - first + 1);
  const auto value = whole_number<double>(text);
  if (!value) return std::nullopt;
  if (text.find_first_of(".eE") == std::string::npos && *value > -1e15 && *value < 1e15) {
    return json(static_cast<std::int64_t>(*value));
  }
  return json(*value);
}

void read_number(json& value) {
  if (!value.is_string()) return;
  if (const auto number = number_in(value.get<std::string>())) value = *number;
}

void rename(json& object, std::span<const Spelling> spellings) {
  json found = json::object();
  for (const auto& [key, value] : object.items()) {
    if (value.is_null()) continue;
    const std::string name(meaning(spellings, letters_and_digits(key)));
    if (name.empty() || !value_at(object, name).is_null()) continue;
    if (!found.contains(name)) found[name] = value;
  }
  object.update(found);
}

json& part(json& row, const char* key) {
  json& inner = row[key];
  if (!inner.is_object()) inner = json::object();
  return inner;
}

bool spells(std::span<const Spelling> spellings, std::string_view key) {
  const std::string wanted = letters_and_digits(key);
  return std::ranges::any_of(
      spellings, [&](const Spelling& s) { return wanted == s.text || wanted == letters_and_digits(s.means); });
}

/// Moves the measurements and the model's sizes of a flat table's row, which stand beside the degrees, to their parts.
void gather_flat(json& row) {
  const bool flat_measured = !row.contains("measured");
  const bool flat_model = !value_at(row, "model").is_object();
  const json flat = row;
  for (const auto& [key, value] : flat.items()) {
    if (value.is_null()) continue;
    if (flat_measured && (spells(kMeasured, key) || std::ranges::find(kMeasuredToo, key) != kMeasuredToo.end())) {
      part(row, "measured")[key] = value;
    } else if (flat_model && spells(kModel, key)) {
      json& model = row["model"];
      if (const std::string name = text_at(row, "model"); !name.empty()) model = json{{"name", name}};
      part(row, "model")[key] = value;
    }
  }
}

void fill(json& object, const char* key, std::optional<double> value) {
  if (!value || !(*value > 0) || !value_at(object, key).is_null()) return;
  constexpr double kLargest = 9e15;
  const bool whole = *value == static_cast<double>(static_cast<std::int64_t>(std::min(*value, kLargest)));
  object[key] = whole ? json(static_cast<std::int64_t>(*value)) : json(*value);
}

std::optional<double> positive(const json& object, std::string_view path) {
  const json& value = value_at(object, path);
  if (!value.is_number() || !(value.get<double>() > 0)) return std::nullopt;
  return value.get<double>();
}

/// Returns the product, or its quotient by `divisor`, where all are there.
std::optional<double> product(std::optional<double> a, std::optional<double> b, std::optional<double> divisor = 1) {
  if (!a || !b || !divisor) return std::nullopt;
  return *a * *b / *divisor;
}

void count_devices(json& row) {
  fill(row, "gpus", product(positive(row, "nodes"), positive(row, "gpus_per_node")));
  if (const auto per_node = product(positive(row, "gpus"), 1, positive(row, "nodes"));
      per_node && *per_node == static_cast<double>(static_cast<std::int64_t>(std::min(*per_node, 1e6)))) {
    fill(row, "gpus_per_node", per_node);
  }
}

std::optional<double> replicas_of(const json& row) {
  const double ranks =
      positive(row, "tp").value_or(1) * positive(row, "pp").value_or(1) * positive(row, "cp").value_or(1);
  return positive(row, "dp") ? positive(row, "dp") : product(positive(row, "gpus"), 1, ranks);
}

/// Fills the sequences of one step.
void count_batch(json& row) {
  fill(row, "gbs", product(positive(row, "gbs_tokens"), 1, positive(row, "model.seq")));
  const auto accumulated = positive(row, "n_microbatches") ? positive(row, "n_microbatches") : positive(row, "ga");
  fill(row, "gbs", product(product(positive(row, "mbs"), accumulated), replicas_of(row)));
}

/// Reads a rate as that of whole micro-batches. A replica whose micro-batches do not divide its batch ends with a
/// smaller one, and its rate is that of whole ones. The printed batch stays as "gbs_printed".
void take_whole_microbatches(json& row) {
  for (const char* time :
       {"measured.step_time_s", "measured.step_time_s_median", "measured.step_time_ms", "derived.step_time_s"}) {
    if (!value_at(row, time).is_null()) return;
  }
  constexpr auto kMost = static_cast<double>(kMostSequences);
  const auto batch = positive(row, "gbs"), microbatch = positive(row, "mbs"), replicas = replicas_of(row);
  if (!batch || !microbatch || !replicas || *batch > kMost) return;
  const auto sequences = static_cast<std::int64_t>(*batch);
  const auto together = static_cast<std::int64_t>(std::min(*microbatch * *replicas, kMost));
  if (together < 1 || sequences < together || sequences % together == 0) return;
  row["gbs_printed"] = row["gbs"];
  row["gbs"] = sequences - sequences % together;
}

void take_rates(json& row) {
  if (!value_at(row, "measured").is_object()) return;
  json& measured = row["measured"];
  constexpr double kDay = 86400;
  fill(measured, "tokens_per_s", product(positive(measured, "tokens"), 1 / kDay, positive(measured, "days")));
  fill(measured, "tflops_per_gpu", product(positive(measured, "pflops"), 1e3, positive(row, "gpus")));
  if (const auto ratio = positive(measured, "mfu")) fill(measured, "mfu_pct", *ratio <= 1 ? 100 * *ratio : *ratio);
}

/// The MLPs of GPT-2 and 3, of OPT (Zhang et al. 2022) and of BLOOM (Le Scao et al. 2022) have no gate; GPT-OSS's have.
void take_architecture(json& row) {
  static const Pattern kPlain(R"(GPT|\bOPT\b|BLOOM)"), kGated(R"(GPT[-_ ]?OSS)");
  const std::string name = text_at(row, "model.name");
  if (!value_at(row, "model.gated_mlp").is_null() || !value_at(row, "model.mlp").is_null()) return;
  if (kPlain.found_in(name) && !kGated.found_in(name)) row["model"]["gated_mlp"] = false;
}

/// Joins all words of the row that name what trained: its framework, and where and under which title it is printed.
void take_names(json& row) {
  std::string named;
  for (const char* path : {"framework", "system", "title", "source.repo", "source.paper"}) {
    if (const std::string text = text_at(row, path); !text.empty()) named += (named.empty() ? "" : "; ") + text;
  }
  if (!named.empty() && row.is_object() && !row.contains("named")) row["named"] = named;
}

}  // namespace

json in_schema(const json& printed) {
  json row = printed;
  gather_flat(row);
  rename(row, kRow);
  for (const std::string_view key : kCounts) {
    if (const auto found = row.find(key); found != row.end()) read_number(*found);
  }
  if (const json& recompute = value_at(row, "recompute"); recompute.is_boolean()) {
    row["recompute"] = recompute.get<bool>() ? "full" : "none";
  }
  if (const std::string name = text_at(row, "model"); !name.empty()) row["model"] = json{{"name", name}};
  if (const json& model = value_at(row, "model"); model.is_object()) {
    rename(row["model"], kModel);
    for (auto& [key, value] : row["model"].items()) {
      if (key != "name" && key != "dims_key") read_number(value);
    }
  }
  for (const char* key : {"seq", "sequence_length", "seq_length", "seq_len"}) {
    json sequence = value_at(row, key);
    if (sequence.is_null() || !value_at(row, "model.seq").is_null()) continue;
    read_number(sequence);
    part(row, "model")["seq"] = sequence;
  }
  if (value_at(row, "measured").is_object()) {
    rename(row["measured"], kMeasured);
    for (auto& [key, value] : row["measured"].items()) read_number(value);
  }
  count_devices(row);
  count_batch(row);
  take_whole_microbatches(row);
  take_rates(row);
  take_architecture(row);
  take_names(row);
  return row;
}

}}  // namespace plumb::planner
