#include "planner/score/row_mapping.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/score/row_fields.h"
#include "planner/search/layout_conflict.h"
#include "planner/spec/assumed_stack.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/generators/catalogue.h"
#include "schedules/pattern.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

/// The reason why a row cannot be asked; thrown inside this file only.
struct Unmapped {
  std::string reason;
};

constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;

/// Returns a count that a row prints; a count that no run can have is the row's fault.
std::optional<std::int64_t> printed_count(const json& row, std::string_view path, std::int64_t most) {
  const auto count = integer_at(row, path);
  if (count && (*count < 1 || *count > most))
    throw Unmapped{fmt::format("{} is {}, which no run can have", path, *count)};
  return count;
}

/// A row while it is being mapped.
struct RowReader {
  const ScoreLibrary& library;
  const json& row;
  const SourceMapping* mapping;
  std::vector<std::string> assumptions;

  std::optional<std::int64_t> integer(std::string_view path) const { return integer_at(row, path); }
  std::optional<std::int64_t> count(std::string_view path) const {
    return printed_count(row, path, std::numeric_limits<std::int32_t>::max());
  }
  std::string text(std::string_view path) const { return text_at(row, path); }
  int degree(std::string_view path) const { return static_cast<int>(printed_count(row, path, kMostRanks).value_or(1)); }
};

const json& preset_of(const std::map<std::string, json>& presets, const std::string& name, std::string_view what) {
  const auto found = presets.find(name);
  if (found == presets.end()) throw SpecError(fmt::format("there is no {} preset \"{}\"", what, name));
  return found->second;
}

/// Returns the preset with the figures that stand under `part` in the overrides.
json overridden(const ScoreLibrary& library, json spec, std::string_view part) {
  const std::string prefix = std::string(part) + ".";
  for (const auto& [path, value] : library.overrides) {
    if (path.starts_with(prefix)) set_at(spec, std::string_view(path).substr(prefix.size()), value);
  }
  return spec;
}

int devices_in_node(const json& cluster) {
  for (const char* path : {"node.devices", "node.devices.value"}) {
    if (const auto devices = integer_at(cluster, path)) return static_cast<int>(*devices);
  }
  return 1;
}

/// Sets a node's devices as printed, unless the preset's node is a domain of several hosts: then a host's are printed.
void take_printed_node(json& cluster, const RowReader& reader) {
  const auto printed = reader.count("gpus_per_node");
  if (printed && devices_in_node(cluster) <= kLargestHost) set_at(cluster, "node.devices", *printed);
}

/// Sets the memory that the text names for a device ("RTX 4090 48GB") where it differs from the preset's.
void take_printed_memory(json& cluster, const std::string& hardware) {
  const auto printed = memory_gb_in(hardware);
  if (!printed) return;
  const json& preset = value_at(cluster, "device.memory_gib");
  const json& known = preset.is_object() ? value_at(preset, "value") : preset;
  constexpr double kGibibyteInGb = 1.073741824, kAlike = 0.12;
  if (!known.is_number() || std::abs(*printed / known.get<double>() - 1) <= kAlike) return;
  set_at(cluster, "device.memory_gib", *printed / kGibibyteInGb);
}

/// Sets the NICs that the text names; the efficiency and latency stay the preset's.
void take_printed_network(json& cluster, const std::string& hardware) {
  const int per_node = devices_in_node(cluster);
  const auto network = network_in(hardware, per_node);
  if (!network || value_at(cluster, "network").is_null()) return;
  set_at(cluster, "network.bandwidth_gb_per_s", network->node_bytes_per_second / (kGiga * per_node));
  if (network->nics > 0 && !value_at(cluster, "nccl").is_null()) set_at(cluster, "nccl.nics", network->nics);
}

/// Returns the rule of the row's own mapping, or the general mapping's where that has none for such hardware; null:
/// there is no mapping.
const ClusterRule* cluster_rule_of(RowReader& reader, const std::string& hardware) {
  if (!reader.mapping) return nullptr;
  if (const ClusterRule* rule = cluster_rule_for(*reader.mapping, hardware)) return rule;
  for (const SourceMapping& general : reader.library.mappings) {
    if (!general.cites.empty()) continue;
    const ClusterRule* rule = cluster_rule_for(general, hardware);
    if (!rule) continue;
    reader.assumptions.push_back(
        fmt::format("the mapping names no cluster for \"{}\": by the general rules {}", hardware, rule->cluster));
    return rule;
  }
  throw Unmapped{
      fmt::format("no cluster for the hardware \"{}\": name a preset in a mapping of your own (--mapping)", hardware)};
}

ClusterSpec cluster_of(RowReader& reader) {
  const std::string hardware = reader.text("hardware");
  if (hardware.empty()) throw Unmapped{"the row does not name its hardware"};
  const ClusterRule* rule = cluster_rule_of(reader, hardware);
  std::string preset = rule ? rule->cluster : "";
  if (!rule) {
    preset = device_preset_in(hardware);
    if (preset.empty()) throw Unmapped{fmt::format("unknown hardware \"{}\"", hardware)};
    reader.assumptions.push_back(fmt::format("the cluster is the preset {}", preset));
  }
  json cluster = preset_of(reader.library.clusters, preset, "cluster");
  if (rule) {
    for (const auto& [path, value] : rule->set) set_at(cluster, path, value);
  }
  take_printed_node(cluster, reader);
  take_printed_memory(cluster, hardware);
  if (rule && rule->network_as_printed) take_printed_network(cluster, hardware);
  cluster.erase("devices");
  const auto gpus = reader.count("gpus");
  if (!gpus) throw Unmapped{"the number of GPUs is not printed"};
  ClusterSpec spec = cluster_from_json(overridden(reader.library, std::move(cluster), "cluster"), "cluster " + preset);
  if (rule) {
    if (const auto table = reader.library.samples.find(rule->table); table != reader.library.samples.end()) {
      spec.samples = table->second;
    }
  }
  try {
    return resize(std::move(spec), static_cast<int>(*gpus));
  } catch (const SpecError& error) {
    throw Unmapped{error.what()};
  }
}

/// Makes a value of a row's own words: where it cannot be made, the row is at fault.
template <class Make>
auto of_row(const Make& make) {
  try {
    return make();
  } catch (const SpecError& error) {
    throw Unmapped{error.what()};
  }
}

/// Returns true if a rule of the mapping fills such a field: then the mapping is at fault, not the row.
bool fills(const SourceMapping* mapping, const std::string& prefix, const json* value = nullptr) {
  const auto says = [&](const std::pair<std::string, json>& field) {
    return field.first.starts_with(prefix) && (!value || field.second == *value);
  };
  return mapping && std::ranges::any_of(mapping->rules, [&](const MappingRule& rule) {
           return std::ranges::any_of(rule.fill, says) || std::ranges::any_of(rule.correct, says);
         });
}

/// Returns the stack that the row or its mapping names, or else the one that is assumed of such a training.
std::optional<StackSpec> stack_of(RowReader& reader, const ModelSpec& model, const ClusterSpec& cluster,
                                  const Layout& layout) {
  std::string name = reader.text("stack");
  if (name.empty()) {
    const auto assumed = assumed_stack(model, cluster, layout);
    if (!assumed) throw Unmapped{fmt::format("no framework is described for {}: name one", cluster.device.name)};
    name = assumed->name;
    reader.assumptions.push_back(fmt::format("no framework is named: {} is assumed ({})", name, assumed->because));
  }
  const json named = name;
  if (!reader.library.stacks.contains(name) && !fills(reader.mapping, "stack", &named)) {
    throw Unmapped{fmt::format("there is no stack \"{}\": plumb stacks lists those there are", name)};
  }
  const json stack = preset_of(reader.library.stacks, name, "stack");
  StackSpec spec = stack_from_json(overridden(reader.library, stack, "stack"), "stack " + name);
  const json& with = value_at(reader.row, "stack_with");
  if (with.is_null()) return spec;
  if (!with.is_object()) throw Unmapped{"stack_with is no object: write {\"FIGURE\": VALUE}"};
  json own = stack;
  own.update(with);
  const auto make = [&] { return stack_from_json(overridden(reader.library, own, "stack"), "stack " + name); };
  return fills(reader.mapping, "stack_with") ? make() : of_row(make);
}

TrainingSpec training_of(RowReader& reader, const ModelSpec& model, const ClusterSpec& cluster, const Layout& layout) {
  TrainingSpec training{.sequence = reader.count("model.seq").value_or(model.sequence)};
  if (training.sequence < 1) throw Unmapped{"the length of a sequence is not printed"};
  const auto batch = reader.count("gbs");
  const auto microbatches = reader.count("n_microbatches") ? reader.count("n_microbatches") : reader.count("ga");
  if (batch) {
    training.global_batch = *batch;
  } else if (microbatches) {
    training.global_batch = *microbatches * layout.data * layout.microbatch;
  } else {
    throw Unmapped{"the global batch is not printed"};
  }
  const std::string precision = reader.text("precision");
  const auto known = precision_in(precision);
  if (!known && !precision.empty()) throw Unmapped{fmt::format("precision \"{}\" cannot be predicted", precision)};
  if (!known && cluster.device.peak_flops_per_second.contains(Precision::kFp8)) {
    throw Unmapped{"the precision is not printed, and the device has fp8"};
  }
  if (!known) reader.assumptions.push_back("the precision is bf16");
  training.precision = known.value_or(Precision::kBf16);
  if (const std::string gradient = reader.text("gradient_precision"); !gradient.empty()) {
    training.gradient_precision = of_row([&] { return precision_from_name(gradient, "gradient_precision"); });
  }
  if (const std::string optimizer = reader.text("optimizer"); !optimizer.empty()) {
    training.optimizer = of_row([&] { return optimizer_from_name(optimizer, "optimizer"); });
  }
  training.stack = stack_of(reader, model, cluster, layout);
  return training;
}

/// Returns the layers with as many on the first and last stage as on the others, where the row says that these have one
/// less.
std::optional<std::int64_t> rounded_layers(const RowReader& reader) {
  const auto layers = reader.integer("model.layers");
  if (!layers || reader.text("first_last_stage").find("one layer fewer") == std::string::npos) return std::nullopt;
  return *layers + 2;
}

int chunks_of(const RowReader& reader, int pipeline) {
  const std::string chunks = reader.text("vpp");
  if (chunks.empty()) return reader.degree("vpp");
  const auto layers = rounded_layers(reader);
  if (chunks.starts_with("one layer per chunk") && layers && *layers % pipeline == 0) {
    return static_cast<int>(*layers / pipeline);
  }
  throw Unmapped{fmt::format("the chunks a rank are \"{}\"", chunks)};
}

std::vector<int> split_of(const RowReader& reader, const Layout& layout) {
  const json& printed = value_at(reader.row, "split");
  if (printed.is_array()) {
    std::vector<int> split;
    for (const json& layers : printed) split.push_back(layers.is_number_integer() ? layers.get<int>() : 0);
    return split;
  }
  const auto layers = rounded_layers(reader);
  const std::int64_t parts = std::int64_t{layout.pipeline} * layout.chunks;
  if (!layers || parts == 1) return {};
  if (*layers < 1 || *layers % parts != 0) {
    throw Unmapped{fmt::format("{} stages with one layer fewer on the first and the last have no even share of {}",
                               parts, *layers - 2)};
  }
  std::vector<int> split(static_cast<std::size_t>(parts), static_cast<int>(*layers / parts));
  --split.front();
  --split.back();
  return split;
}

/// Returns the printed micro-batch, or the one that follows from a replica's batch and its number of micro-batches.
std::optional<std::int64_t> microbatch_of(const RowReader& reader, const Layout& layout) {
  if (const auto printed = reader.count("mbs")) return printed;
  const auto batch = reader.count("gbs");
  const auto count = reader.count("n_microbatches") ? reader.count("n_microbatches") : reader.count("ga");
  if (!batch || !count || *count < 1 || *batch % (*count * layout.data) != 0) return std::nullopt;
  return *batch / (*count * layout.data);
}

Layout layout_of_row(RowReader& reader) {
  Layout layout{.tensor = reader.degree("tp"),
                .pipeline = reader.degree("pp"),
                .context = reader.degree("cp"),
                .expert = reader.degree("ep"),
                .expert_tensor = reader.degree("etp")};
  const auto gpus = reader.count("gpus");
  if (!gpus) throw Unmapped{"the number of GPUs is not printed"};
  const std::int64_t model_ranks = std::int64_t{layout.tensor} * layout.pipeline * layout.context;
  const std::int64_t data =
      printed_count(reader.row, "dp", kMostRanks).value_or(std::max<std::int64_t>(1, *gpus / model_ranks));
  if (model_ranks > *gpus || model_ranks * data != *gpus) {
    const double product = static_cast<double>(model_ranks) * static_cast<double>(data);
    throw Unmapped{fmt::format("contradictory degrees: tp={} x pp={} x cp={} x dp={} is {:.0f}, not the {} GPUs",
                               layout.tensor, layout.pipeline, layout.context, data, product, *gpus)};
  }
  layout.data = static_cast<int>(data);
  const bool rounded = !value_at(reader.row, "gbs_printed").is_null();
  if (rounded) reader.assumptions.push_back("a rate is that of whole micro-batches, which do not divide the batch");
  const auto microbatch = microbatch_of(reader, layout);
  if (!microbatch) throw Unmapped{"the micro-batch is not printed"};
  layout.microbatch = *microbatch;
  layout.zero = zero_stage_in(reader.row).value_or(0);
  layout.sequence_parallel = layout.tensor > 1 && value_at(reader.row, "sequence_parallel") == json(true);

  const std::string recompute = reader.text("recompute");
  const auto kind = recompute_in(recompute);
  if (!kind && !recompute.empty()) throw Unmapped{fmt::format("recomputation \"{}\" is not known", recompute)};
  if (!kind) reader.assumptions.push_back("nothing is recomputed");
  layout.recompute = kind.value_or(Recompute::kNone);

  if (layout.pipeline > 1) {
    layout.chunks = chunks_of(reader, layout.pipeline);
    const std::string schedule = reader.text("schedule");
    layout.schedule = schedule_in(schedule, layout.chunks);
    if (layout.schedule.empty()) throw Unmapped{fmt::format("the schedule \"{}\" is not known", schedule)};
    if (layout.schedule == "interleaved" && layout.chunks == 1) {
      if (value_at(reader.row, "vpp").is_null()) throw Unmapped{"interleaved, but the chunks a rank are not printed"};
      layout.schedule = "1f1b";  // interleaving with one chunk
    }
  }
  layout.split = split_of(reader, layout);
  if (const auto group = reader.count("group")) layout.group = static_cast<int>(*group);
  return layout;
}

/// Says what is known of the framework: typed rows name none, a source's own mapping names it, and the general one does
/// where it describes it.
FrameworkKnown framework_known(const RowReader& reader) {
  if (reader.library.open_fields) return FrameworkKnown::kAssumed;
  const bool own_mapping = reader.mapping && !reader.mapping->cites.empty();
  if (own_mapping || value_at(reader.row, "framework_described") == json(true)) return FrameworkKnown::kNamed;
  const bool named = !reader.text("framework").empty() || !reader.text("system").empty();
  return named ? FrameworkKnown::kUnknown : FrameworkKnown::kAssumed;
}

/// Refuses rows of several devices that print no degree of parallelism at all.
void require_degrees(const RowReader& reader) {
  if (reader.count("gpus").value_or(1) == 1 || zero_stage_in(reader.row)) return;
  for (const char* degree : {"tp", "pp", "cp", "dp", "ep"}) {
    if (!value_at(reader.row, degree).is_null()) return;
  }
  throw Unmapped{"no degree of parallelism is printed"};
}

/// Refuses rows of another kind of work than pre-training, and of a schedule's variant that is not described.
void require_pretraining(const RowReader& reader) {
  static const Pattern kOther(R"(\b(SFT|LoRA|PEFT|RLHF|GRPO|PPO|DPO|RL|fine-?tun\w*|inference|serving|decode)\b)");
  for (const char* field : {"kind", "task", "stage", "title"}) {
    const std::string text = reader.text(field);
    if (kOther.found_in(text)) throw Unmapped{fmt::format("\"{}\" is no pre-training", text)};
  }
  const std::string method = reader.text("method");
  if (!method.empty() && schedule_in(method, 1).empty() && method.find("baseline") == std::string::npos)
    throw Unmapped{fmt::format("the method \"{}\" is not described", method)};
}

/// Returns the row's question. Throws Unmapped.
RowQuestion question_of(RowReader& reader) {
  require_pretraining(reader);
  require_degrees(reader);
  ModelSpec model;
  try {
    model = model_from_json(
        model_fields(reader.row, reader.library.dims ? *reader.library.dims : json(), reader.library.models), "model");
  } catch (const SpecError& error) {
    throw Unmapped{error.what()};
  }
  const Layout layout = layout_of_row(reader);
  const ClusterSpec cluster = cluster_of(reader);
  const TrainingSpec training = training_of(reader, model, cluster, layout);
  if (reader.mapping && reader.mapping->cites.empty()) {
    reader.assumptions.push_back(
        fmt::format("no mapping names this source: by the general rules the framework is {} and the cluster {}",
                    training.stack->name, cluster.name));
  }
  if (!cluster.device.peak_flops_per_second.contains(training.precision)) {
    throw Unmapped{fmt::format("{} has no rate in {}", cluster.device.name, precision_name(training.precision))};
  }
  if (const auto conflict = layout_conflict(model, training, cluster.devices, layout)) throw Unmapped{*conflict};
  const json& memory = value_at(reader.row, "order_memory");
  if (!memory.is_null() && !(memory.is_number() && memory.get<double>() >= 1)) {
    throw Unmapped{"order_memory is no number of 1 or more"};
  }
  return {.model = model,
          .cluster = cluster,
          .training = training,
          .layout = layout,
          .order_memory = memory.is_null() ? std::nullopt : std::optional(memory.get<double>()),
          .unsynchronised_step = value_at(reader.row, "unsynchronised_step") == json(true),
          .framework = framework_known(reader)};
}

/// Returns true if the row says what the field is, by itself or by others.
bool gives(const json& row, const std::string& field) {
  const auto is_printed = [&](const std::string& name) { return !value_at(row, name).is_null(); };
  if (field == "zero") return zero_stage_in(row).has_value();
  if (field == "mbs") return is_printed("mbs") || is_printed("n_microbatches") || is_printed("ga");
  return is_printed(field);
}

/// Returns the row once for each combination of the fields that `search` leaves open.
std::vector<json> candidates_of(const json& row, const json& search) {
  std::vector<json> candidates = {row};
  if (!search.is_object()) return candidates;
  for (const auto& [field, values] : search.items()) {
    if (gives(row, field) || !values.is_array()) continue;
    std::vector<json> more;
    for (const json& candidate : candidates) {
      for (const json& value : values) {
        more.push_back(candidate);
        set_at(more.back(), field, value);
      }
    }
    candidates = std::move(more);
  }
  return candidates;
}

/// Returns true if all chunks have the same length: frameworks refuse others, but for a layer less at the ends.
bool chunks_are_alike(const RowQuestion& question) {
  const std::int64_t parts = std::int64_t{question.layout.pipeline} * question.layout.chunks;
  return question.layout.chunks == 1 || question.model.layers % parts == 0 || !question.layout.split.empty();
}

}  // namespace

MappedRow map_row(const ScoreLibrary& library, const json& row, const SourceMapping* mapping) {
  MappedRow mapped;
  const json& asked = value_at(row, "search");
  const json& search = asked.is_null() && library.open_fields ? *library.open_fields : asked;
  const std::vector<json> candidates = candidates_of(row, search);
  for (const json& candidate : candidates) {
    RowReader reader{.library = library, .row = candidate, .mapping = mapping};
    try {
      RowQuestion question = question_of(reader);
      if (!gives(row, "vpp") && candidates.size() > 1 && !chunks_are_alike(question)) {
        if (mapped.reason.empty()) mapped.reason = "no chunks that the row leaves open divide the layers alike";
        continue;
      }
      mapped.questions.push_back(std::move(question));
    } catch (const Unmapped& unmapped) {
      if (mapped.reason.empty()) mapped.reason = unmapped.reason;
    }
    mapped.assumptions = std::move(reader.assumptions);
  }
  if (!mapped.questions.empty()) mapped.reason.clear();
  if (mapped.questions.size() > 1) {
    mapped.assumptions.push_back(fmt::format("not printed, the fastest predicted is meant: {}", json_line(search)));
  }
  return mapped;
}

}}  // namespace plumb::planner
