#include "planner/score/row_mapping.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/score/row_cluster.h"
#include "planner/score/row_fields.h"
#include "planner/score/row_layout.h"
#include "planner/score/row_reader.h"
#include "planner/score/row_training.h"
#include "planner/search/layout_conflict.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/pattern.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

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

/// Returns the values of an open field: those of a list, or the numbers of a range, "1..48". Throws Unmapped for others.
std::vector<json> open_values(const std::string& field, const json& values) {
  if (values.is_array() && !values.empty()) return values;
  static const Pattern kRange(R"(^(\d{1,3})\.\.(\d{1,3})$)");
  const std::vector<std::string> ends = kRange.groups_in(values.is_string() ? values.get<std::string>() : "");
  std::vector<json> numbers;
  if (!ends.empty())
    for (int number = std::stoi(ends[1]); number <= std::stoi(ends[2]); ++number) numbers.emplace_back(number);
  if (numbers.empty()) throw Unmapped{fmt::format("search: {}: give a list, or a range as in \"1..48\"", field)};
  return numbers;
}

/// Returns the row once for each combination of the fields that `search` leaves open. Throws as open_values() does.
std::vector<json> candidates_of(const json& row, const json& search) {
  std::vector<json> candidates = {row};
  if (!search.is_object()) return candidates;
  for (const auto& [field, values] : search.items()) {
    if (gives(row, field)) continue;
    const std::vector<json> open = open_values(field, values);
    std::vector<json> more;
    for (const json& candidate : candidates) {
      for (const json& value : open) {
        more.push_back(candidate);
        set_at(more.back(), field, value);
      }
    }
    candidates = std::move(more);
  }
  return candidates;
}

/// Returns what is open of a model: one without experts has no groups that share them.
json of_use(json search, const json& model) {
  const auto experts = integer_at(model, "experts");
  if (search.is_object() && !(experts && *experts > 0)) search.erase("ep");
  return search;
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
  const json search = of_use(asked.is_null() && library.open_fields ? *library.open_fields : asked,
                             model_fields(row, library.dims ? *library.dims : json(), library.models));
  std::vector<json> candidates;
  try {
    candidates = candidates_of(row, search);
  } catch (const Unmapped& unmapped) {
    mapped.reason = unmapped.reason;
  }
  for (const json& candidate : candidates) {
    RowReader reader{.library = library, .row = candidate, .mapping = mapping};
    try {
      RowQuestion question = question_of(reader);
      if (!gives(row, "vpp") && candidates.size() > 1 && !chunks_are_alike(question)) {
        if (mapped.reason.empty()) mapped.reason = "no chunks that the row leaves open divide the layers alike";
        continue;
      }
      question.open_recompute = !gives(row, "recompute") && search.is_object() && search.contains("recompute");
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
