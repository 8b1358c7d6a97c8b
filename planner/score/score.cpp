#include "planner/score/score.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "planner/score/row_fields.h"
#include "schedules/error.h"

namespace plumb {
namespace {

using nlohmann::json;

/// What is predicted of one row, as far as it is asked for.
struct RowPrediction {
  std::optional<double> step_seconds;
  std::optional<double> peak_bytes;
  std::optional<double> least_bytes;
  std::vector<std::int64_t> bytes_by_pipeline_rank;
  std::optional<double> layer_forward_seconds;
  std::optional<double> layer_backward_seconds;
  std::string failure;
};

/// A transformer layer of the middle of the model, on a rank of the first stage.
RowPrediction predict_layer(const RowQuestion& question) {
  Pricing pricing(question.model, question.cluster, question.training);
  const auto& groups = pricing.placements(question.layout).inner.front();
  const auto kind = static_cast<std::size_t>(pricing.kind_of_layer()[pricing.kind_of_layer().size() / 2]);
  const LayerPrice& price = pricing.layer_prices(question.layout, groups)[kind];
  PassPrice backward = price.input_grad;
  backward += price.weight_grad;
  if (question.layout.recompute == Recompute::kSelective) backward += price.rebuild_selective;
  if (question.layout.recompute == Recompute::kFull) backward += price.rebuild_full;
  return {.layer_forward_seconds = total(price.forward).count(), .layer_backward_seconds = total(backward).count()};
}

RowPrediction predict_step(const RowQuestion& question) {
  Pricing pricing(question.model, question.cluster, question.training);
  const Prediction prediction = predict(pricing, question.layout).prediction;
  const auto [least, most] = std::ranges::minmax(prediction.peak_memory_bytes);
  return {.step_seconds = prediction.step_time.count(),
          .peak_bytes = static_cast<double>(most),
          .least_bytes = static_cast<double>(least),
          .bytes_by_pipeline_rank = prediction.peak_memory_bytes};
}

RowPrediction predict_row(const RowQuestion& question, const MeasuredQuantities& measured) {
  try {
    return measured.layer_forward || measured.layer_backward ? predict_layer(question) : predict_step(question);
  } catch (const SpecError& error) {
    return {.failure = error.what()};
  } catch (const ScheduleError& error) {
    return {.failure = error.what()};
  }
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
  compare(Quantity::kLayerForward, predicted.layer_forward_seconds, count(measured.layer_forward));
  compare(Quantity::kLayerBackward, predicted.layer_backward_seconds, count(measured.layer_backward));
  const std::size_t ranks = measured.memory_by_rank_bytes.size();
  const std::size_t stages = predicted.bytes_by_pipeline_rank.size();
  if (ranks > 0 && stages > 0 && ranks % stages == 0) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      compare(Quantity::kMemory, static_cast<double>(predicted.bytes_by_pipeline_rank[rank / (ranks / stages)]),
              measured.memory_by_rank_bytes[rank]);
    }
  } else {
    compare(Quantity::kMemory, predicted.peak_bytes, measured.peak_memory_bytes);
    compare(Quantity::kMemory, predicted.least_bytes, measured.least_memory_bytes);
  }
  return result;
}

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

/// Rows of one model on as many devices with the same batch: their layouts compete.
struct Competition {
  std::vector<double> predicted;
  std::vector<double> measured;
};

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

void summarise(SourceScore& score) {
  score.step_time = error_statistics(errors_of(score, {Quantity::kStepTime}));
  score.memory = error_statistics(errors_of(score, {Quantity::kMemory}));
  score.layer_time = error_statistics(errors_of(score, {Quantity::kLayerForward, Quantity::kLayerBackward}));
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

}  // namespace

PublishedRows published_rows(const json& document, const std::string& file) {
  PublishedRows published{.file = file};
  const auto rows = document.is_object() ? document.find("rows") : document.end();
  if (!document.is_object() || rows == document.end() || !rows->is_array()) {
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

SourceScore score_rows(const ScoreLibrary& library, const PublishedRows& published) {
  SourceScore score{.file = published.file, .rows = static_cast<int>(published.rows.size())};
  std::map<std::string, Competition> competitions;
  for (std::size_t i = 0; i < published.rows.size(); ++i) {
    const std::string id = row_id(published, i);
    const auto skip = [&](const std::string& reason) { score.skipped.push_back({.id = id, .reason = reason}); };
    const SourceMapping* mapping = mapping_for(library.mappings, published.rows[i]);
    if (mapping && score.source.empty()) score.source = mapping->name;
    const ReadRow read = mapping ? read_by(*mapping, published.rows[i]) : ReadRow{.row = published.rows[i]};
    if (!read.skip.empty()) {
      skip(read.skip);
      continue;
    }
    const MeasuredQuantities measured = measured_quantities(read.row);
    const bool layer = measured.layer_forward || measured.layer_backward;
    if (!measured.step_time && !measured.peak_memory_bytes && !layer) {
      skip("neither a step's time nor memory was measured");
      continue;
    }
    const MappedRow mapped = map_row(library, read.row, mapping);
    if (!mapped.question) {
      skip(mapped.reason);
      continue;
    }
    const RowPrediction predicted = predict_row(*mapped.question, measured);
    if (!predicted.failure.empty()) {
      skip(predicted.failure);
      continue;
    }
    std::vector<ScoredQuantity> quantities = compared(id, predicted, measured);
    if (!read.corrections.empty()) {
      const MappedRow printed = map_row(library, read_by(*mapping, published.rows[i], false).row, mapping);
      if (printed.question) {
        const std::vector<ScoredQuantity> others = compared(id, predict_row(*printed.question, measured), measured);
        for (std::size_t q = 0; q < quantities.size() && q < others.size(); ++q) {
          quantities[q].predicted_uncorrected = others[q].predicted;
        }
      }
    }
    add_new(score.corrections, read.corrections);
    add_new(score.assumptions, mapped.assumptions);
    if (measured.step_time && predicted.step_seconds) {
      Competition& competition =
          competitions[fmt::format("{}|{}|{}", to_json(mapped.question->model).dump(), mapped.question->cluster.devices,
                                   mapped.question->training.global_batch)];
      competition.predicted.push_back(*predicted.step_seconds);
      competition.measured.push_back(measured.step_time->count());
    }
    ++score.scored;
    score.quantities.insert(score.quantities.end(), quantities.begin(), quantities.end());
  }
  summarise(score);
  judge_order(score, competitions);
  return score;
}

}  // namespace plumb
