#include "planner/score/score.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/price/layer/model_flops.h"
#include "planner/score/row_fields.h"
#include "planner/score/row_spelling.h"
#include "planner/threads/workers.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

void add_new(std::vector<std::string>& known, const std::vector<std::string>& more) {
  for (const std::string& text : more) {
    if (std::ranges::find(known, text) == known.end()) known.push_back(text);
  }
}

std::vector<double> errors_of(const SourceScore& score, const std::vector<Quantity>& quantities) {
  std::vector<double> errors;
  for (const ScoredQuantity& scored : score.quantities) {
    if (std::ranges::find(quantities, scored.quantity) != quantities.end()) errors.push_back(error_pct(scored));
  }
  return errors;
}

/// Rows of one model on as many devices of one kind with the same batch: their layouts compete.
struct Competition {
  std::vector<double> predicted;
  std::vector<double> measured;
};

/// Adds the step's time that follows from the model's FLOPs and a rate in FLOP/s.
void add_step_time(MeasuredQuantities& measured, const RowQuestion& question) {
  if (measured.step_time) return;
  std::optional<double> rate = measured.flops_per_device_second;
  const auto& peaks = question.cluster.device.peak_flops_per_second;
  if (const auto peak = peaks.find(question.training.precision); !rate && measured.utilization && peak != peaks.end()) {
    rate = *measured.utilization * peak->second;
  }
  if (!rate) return;
  const double flops =
      counted_flops_per_step(question.model, question.training, question.layout.recompute, measured.flops_count);
  measured.step_time = Seconds{flops / (*rate * question.cluster.devices)};
}

/// Returns the reason why the row cannot have run in the precision that it names: its products alone would need more
/// than the device's peak. Empty where they would not.
std::string above_peak(const MeasuredQuantities& measured, const RowQuestion& question) {
  const bool has_peak = question.cluster.device.peak_flops_per_second.contains(question.training.precision);
  if (!measured.step_time || !has_peak) return "";
  const double flops = counted_flops_per_step(question.model, question.training, Recompute::kNone, FlopsCount::kCausal);
  const double share = flops_utilization(flops, question.training, question.cluster, *measured.step_time);
  if (share <= 1) return "";
  return fmt::format(
      "its step needs {:.1f} times the peak of the {} in {}: it ran in another precision, or its figures are not of "
      "one run",
      share, question.cluster.device.name, precision_name(question.training.precision));
}

/// Adds a mapping's notes to the score: a file may have rows of several sources.
void note_mapping(SourceScore& score, const SourceMapping& mapping) {
  if (std::ranges::find(score.mappings, mapping.name) != score.mappings.end()) return;
  score.mappings.push_back(mapping.name);
  score.published.insert(score.published.end(), mapping.published.begin(), mapping.published.end());
  add_new(score.limits, mapping.limits);
}

void judge_fit(FitJudgement& judgement, const ReadyRow& row, bool fits) {
  if (row.measured.out_of_memory) {
    ++judgement.out_of_memory_rows;
    if (fits) judgement.accepted_out_of_memory.push_back(row.id);
  } else {
    ++judgement.running_rows;
    if (!fits) judgement.refused_running.push_back(row.id);
  }
}

std::string kind_of(const RowQuestion& question) {
  return fmt::format("{}, {}", precision_name(question.training.precision),
                     question.model.experts > 0 ? "experts" : "dense");
}

/// Adds the prediction of each quantity without the corrections of the mapping.
void add_uncorrected(const ScoreLibrary& library, const ReadyRow& row, std::vector<ScoredQuantity>& quantities) {
  if (row.read.corrections.empty()) return;
  const MappedRow printed =
      map_row(library, *read_by_all(library.mappings, row.mapping, *row.printed, false).row, row.mapping);
  if (printed.questions.empty()) return;
  const std::vector<ScoredQuantity> others =
      compared(row.id, fastest_prediction(printed.questions, row.measured).prediction, row.measured);
  for (std::size_t i = 0; i < quantities.size() && i < others.size(); ++i) {
    quantities[i].predicted_uncorrected = others[i].predicted;
  }
}

void judge_order(SourceScore& score, const std::map<std::string, Competition>& competitions) {
  constexpr std::size_t kSmallest = 3;
  double weights = 0, correlations = 0, regrets = 0;
  for (const auto& [key, competition] : competitions) {
    if (competition.predicted.size() < kSmallest) continue;
    const auto weight = static_cast<double>(competition.predicted.size());
    weights += weight;
    correlations += weight * rank_correlation(competition.predicted, competition.measured);
    regrets += weight * top1_regret_pct(competition.predicted, competition.measured);
  }
  if (weights == 0) return;
  score.rank_correlation = correlations / weights;
  score.top1_regret_pct = regrets / weights;
}

std::vector<KindStatistics> statistics_by_kind(const std::vector<ScoredQuantity>& quantities) {
  std::map<std::pair<Quantity, std::string>, std::vector<double>> errors;
  for (const ScoredQuantity& scored : quantities) errors[{scored.quantity, scored.kind}].push_back(error_pct(scored));
  std::vector<KindStatistics> kinds;
  for (const auto& [key, of_kind] : errors) {
    const auto alike = [quantity = key.first](const auto& other) { return other.first.first == quantity; };
    if (std::ranges::count_if(errors, alike) < 2) continue;
    kinds.push_back({.quantity = key.first, .kind = key.second, .errors = error_statistics(of_kind)});
  }
  return kinds;
}

void summarise(SourceScore& score) {
  score.step_time = error_statistics(errors_of(score, {Quantity::kStepTime}));
  score.memory = error_statistics(errors_of(score, {Quantity::kMemory}));
  score.layer_time = error_statistics(errors_of(score, {Quantity::kLayerForward, Quantity::kLayerBackward}));
  score.kinds = statistics_by_kind(score.quantities);
  std::vector<double> uncorrected;
  bool any = false;
  for (const ScoredQuantity& scored : score.quantities) {
    if (scored.quantity != Quantity::kStepTime) continue;
    ScoredQuantity printed = scored;
    printed.predicted = scored.predicted_uncorrected.value_or(scored.predicted);
    any = any || scored.predicted_uncorrected;
    uncorrected.push_back(error_pct(printed));
  }
  if (any) score.step_time_uncorrected = error_statistics(uncorrected);
}

std::string source_of(const PublishedRows& published, const json& row) {
  std::string cited = citation_of(row);
  return cited.empty() ? published.file : cited;
}

/// Adds the number of experts of the model that a row only names, so that rules can tell mixtures.
json with_experts(const ScoreLibrary& library, json row) {
  const json model = model_fields(row, library.dims ? *library.dims : json(), library.models);
  if (const auto experts = integer_at(model, "experts"); experts && value_at(row, "model").is_object())
    row["model"]["experts"] = *experts;
  return row;
}

}  // namespace

PublishedRows published_rows(const json& document, const std::string& file) {
  PublishedRows published{.file = file};
  const json* rows = document.is_array() ? &document : nullptr;
  if (document.is_object() && document.contains("rows")) rows = &document["rows"];
  if (rows == nullptr || !rows->is_array()) {
    throw SpecError(fmt::format("{}: there is no list \"rows\" of published runs: give a file of that form", file));
  }
  for (std::size_t i = 0; i < rows->size(); ++i) {
    if (!(*rows)[i].is_object()) throw SpecError(fmt::format("{}: rows[{}] is no object: make it one", file, i));
    published.rows.push_back((*rows)[i]);
  }
  return published;
}

std::string_view quantity_name(Quantity quantity) {
  switch (quantity) {
    case Quantity::kStepTime:
      return "step_time_s";
    case Quantity::kMemory:
      return "memory_bytes";
    case Quantity::kLayerForward:
      return "layer_forward_s";
    case Quantity::kLayerBackward:
      return "layer_backward_s";
  }
  return "";
}

double error_pct(const ScoredQuantity& scored) {
  return 100 * (scored.predicted / scored.measured - 1);
}

std::string row_id(const PublishedRows& published, std::size_t index) {
  const std::string id = text_at(published.rows[index], "id");
  return id.empty() ? fmt::format("{}#{}", published.file, index) : id;
}

ReadyRows ready_rows(const ScoreLibrary& library, const PublishedRows& published) {
  ReadyRows ready;
  for (std::size_t i = 0; i < published.rows.size(); ++i) {
    const auto printed = std::make_shared<const json>(with_experts(library, in_schema(published.rows[i])));
    const SourceMapping* mapping = mapping_for(library.mappings, *printed);
    ReadyRow row{.id = row_id(published, i),
                 .mapping = mapping,
                 .printed = printed,
                 .read = read_by_all(library.mappings, mapping, *printed)};
    row.measured = measured_quantities(*row.read.row);
    const MeasuredQuantities& measured = row.measured;
    const bool compared = measured.step_time || measured.peak_memory_bytes || measured.layer_forward ||
                          measured.layer_backward || measured.out_of_memory || measured.flops_per_device_second ||
                          measured.utilization;
    if (!row_meets(library.only, *row.read.row)) {
      ready.skipped.push_back({.id = row.id, .reason = "not among the rows that were asked for"});
    } else if (!row.read.skip.empty()) {
      ready.skipped.push_back({.id = row.id, .reason = row.read.skip});
    } else if (!compared && row.read.row->contains("collective")) {
      ready.skipped.push_back({.id = row.id, .reason = "a collective, which stands apart"});
    } else if (!compared) {
      ready.skipped.push_back({.id = row.id, .reason = "neither a step's time nor memory was measured"});
    } else {
      ready.rows.push_back(std::move(row));
    }
  }
  return ready;
}

std::vector<ScoredQuantity> compared(const std::string& id, const RowPrediction& predicted,
                                     const MeasuredQuantities& measured) {
  std::vector<ScoredQuantity> result;
  const auto compare = [&](Quantity quantity, std::optional<double> prediction, std::optional<double> measurement) {
    if (prediction && measurement) {
      result.push_back({.id = id, .quantity = quantity, .predicted = *prediction, .measured = *measurement});
    }
  };
  const auto count = [](std::optional<Seconds> seconds) {
    return seconds ? std::optional(seconds->count()) : std::nullopt;
  };
  compare(Quantity::kStepTime, predicted.step_seconds, count(measured.step_time));
  if (!result.empty()) result.front().components = predicted.components;
  compare(Quantity::kLayerForward, predicted.layer_forward_seconds, count(measured.layer_forward));
  compare(Quantity::kLayerBackward, predicted.layer_backward_seconds, count(measured.layer_backward));
  const std::vector<std::int64_t>& by_stage = predicted.bytes_by_pipeline_rank;
  if (by_stage.empty()) return result;
  const std::size_t ranks = measured.memory_by_rank_bytes.size();
  if (ranks > 0 && ranks % by_stage.size() == 0) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      compare(Quantity::kMemory, static_cast<double>(by_stage[rank / (ranks / by_stage.size())]),
              measured.memory_by_rank_bytes[rank]);
    }
  } else {
    const std::int64_t peak = measured.memory_of_last_rank ? by_stage.back() : std::ranges::max(by_stage);
    compare(Quantity::kMemory, static_cast<double>(peak), measured.peak_memory_bytes);
    compare(Quantity::kMemory, static_cast<double>(std::ranges::min(by_stage)), measured.least_memory_bytes);
  }
  return result;
}

namespace {

/// A row's questions, and the answer to the one that is meant.
struct AnsweredRow {
  MappedRow mapped;
  ChosenPrediction chosen;                 ///< where there is a question
  std::vector<ScoredQuantity> quantities;  ///< empty where the run failed or nothing is predicted
};

/// Predicts a row. Adds the step's time to its measured quantities where that follows from a rate.
AnsweredRow answered(const ScoreLibrary& library, const PublishedRows& published, ReadyRow& row) {
  AnsweredRow answer{.mapped = map_row(library, *row.read.row, row.mapping)};
  if (answer.mapped.questions.empty()) return answer;
  add_step_time(row.measured, answer.mapped.questions.front());
  if (std::string reason = above_peak(row.measured, answer.mapped.questions.front()); !reason.empty()) {
    answer.mapped = {.reason = std::move(reason)};
    return answer;
  }
  answer.chosen = fastest_prediction(answer.mapped.questions, row.measured, true);
  if (!answer.chosen.prediction.failure.empty() || row.measured.out_of_memory) return answer;
  answer.quantities = compared(row.id, answer.chosen.prediction, row.measured);
  const RowQuestion& question = answer.mapped.questions[answer.chosen.index];
  for (ScoredQuantity& scored : answer.quantities) {
    scored.kind = kind_of(question);
    scored.source = source_of(published, *row.printed);
    scored.stack = question.training.stack ? question.training.stack->name : "";
    scored.traits = error_traits(question.model, question.cluster, question.training, question.framework);
  }
  add_uncorrected(library, row, answer.quantities);
  return answer;
}

/// Sums a file's answers up.
SourceScore summed_up(const PublishedRows& published, ReadyRows ready, std::vector<AnsweredRow> answers) {
  SourceScore score{
      .file = published.file, .rows = static_cast<int>(published.rows.size()), .skipped = std::move(ready.skipped)};
  std::map<std::string, Competition> competitions;
  for (std::size_t i = 0; i < ready.rows.size(); ++i) {
    const ReadyRow& row = ready.rows[i];
    const auto& [mapped, chosen, quantities] = answers[i];
    if (row.mapping) note_mapping(score, *row.mapping);
    if (mapped.questions.empty() || !chosen.prediction.failure.empty()) {
      score.skipped.push_back(
          {.id = row.id, .reason = mapped.questions.empty() ? mapped.reason : chosen.prediction.failure});
      continue;
    }
    ++score.scored;
    add_new(score.corrections, row.read.corrections);
    add_new(score.assumptions, mapped.assumptions);
    if (chosen.prediction.step_seconds) judge_fit(score.fits, row, chosen.prediction.fits);
    if (row.measured.out_of_memory) continue;
    if (row.measured.step_time && chosen.prediction.step_seconds) {
      const RowQuestion& question = mapped.questions[chosen.index];
      Competition& competition =
          competitions[fmt::format("{}|{}|{}|{}", json_line(to_json(question.model)), question.cluster.device.name,
                                   question.cluster.devices, question.training.global_batch)];
      competition.predicted.push_back(*chosen.prediction.step_seconds);
      competition.measured.push_back(row.measured.step_time->count());
    }
    score.quantities.insert(score.quantities.end(), quantities.begin(), quantities.end());
  }
  summarise(score);
  judge_order(score, competitions);
  return score;
}

}  // namespace

SourceScore score_rows(const ScoreLibrary& library, const PublishedRows& published) {
  return std::move(score_files(library, {published}).front());
}

std::vector<SourceScore> score_files(const ScoreLibrary& library, const std::vector<PublishedRows>& files) {
  std::vector<ReadyRows> ready;
  std::vector<std::vector<AnsweredRow>> answers;
  std::vector<std::pair<std::size_t, std::size_t>> tasks;  // file and row
  for (std::size_t file = 0; file < files.size(); ++file) {
    ready.push_back(ready_rows(library, files[file]));
    answers.emplace_back(ready.back().rows.size());
    for (std::size_t row = 0; row < ready.back().rows.size(); ++row) tasks.emplace_back(file, row);
  }
  Workers().each(tasks.size(), [&](std::size_t i) {
    const auto [file, row] = tasks[i];
    answers[file][row] = answered(library, files[file], ready[file].rows[row]);
  });
  std::vector<SourceScore> scores;
  for (std::size_t file = 0; file < files.size(); ++file) {
    scores.push_back(summed_up(files[file], std::move(ready[file]), std::move(answers[file])));
  }
  return scores;
}

}}  // namespace plumb::planner
