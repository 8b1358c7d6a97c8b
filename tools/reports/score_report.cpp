#include "tools/reports/score_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tools/reports/or_null.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

std::string signed_pct(double value) {
  return fmt::format("{:+.1f} %", value);
}

std::string pct(double value) {
  return fmt::format("{:.1f} %", value);
}

void add_statistics(TextTable& table, const SourceScore& score, std::string_view what,
                    const ErrorStatistics& statistics) {
  if (statistics.count == 0) return;
  table.rows.push_back({score.file, std::string(what), std::to_string(score.rows), std::to_string(statistics.count),
                        pct(statistics.mean_pct), pct(statistics.median_pct), pct(statistics.worst_pct),
                        signed_pct(statistics.bias_pct)});
}

/// Returns the label of a row, "step time, bf16, dense".
std::string kind_label(const KindStatistics& kind) {
  return fmt::format("{}, {}", kind.quantity == Quantity::kMemory ? "memory" : "step time", kind.kind);
}

std::string worst_text(const SourceScore& score, int worst) {
  TextTable table{.head = {"row", "quantity", "predicted", "measured", "error"}};
  for (const ScoredQuantity& scored : furthest_off(score, static_cast<std::size_t>(worst))) {
    table.rows.push_back({scored.id, std::string(quantity_name(scored.quantity)),
                          fmt::format("{:.6g}", scored.predicted), fmt::format("{:.6g}", scored.measured),
                          signed_pct(error_pct(scored))});
  }
  return table.rows.empty() ? "" : fmt::format("\n{}: furthest off\n{}", score.file, to_text(table));
}

std::string fit_judgement_text(const FitJudgement& fits) {
  std::string text;
  if (!fits.refused_running.empty()) {
    text += fmt::format("  ran, and is predicted not to fit: {} of {} rows ({})\n", fits.refused_running.size(),
                        fits.running_rows, fmt::join(fits.refused_running, ", "));
  }
  if (fits.out_of_memory_rows > 0) {
    text += fmt::format("  ran out of memory: {} rows, of which {} are predicted to fit\n", fits.out_of_memory_rows,
                        fits.accepted_out_of_memory.size());
  }
  return text;
}

std::string notes_text(const SourceScore& score) {
  std::string text;
  for (const std::string& correction : score.corrections) text += fmt::format("  corrected: {}\n", correction);
  for (const std::string& assumption : score.assumptions) text += fmt::format("  assumed: {}\n", assumption);
  for (const std::string& limit : score.limits) text += fmt::format("  limit: {}\n", limit);
  for (const auto& [reason, count] : skip_reasons(score)) text += fmt::format("  skipped {}: {}\n", count, reason);
  text += fit_judgement_text(score.fits);
  if (score.rank_correlation) {
    text +=
        fmt::format("  layouts of one model: rank correlation {:.2f}, the chosen one {:.1f} % slower than the best\n",
                    *score.rank_correlation, *score.top1_regret_pct);
  }
  return text.empty()
             ? ""
             : fmt::format("\n{}{}\n{}", score.file,
                           score.mappings.empty() ? "" : fmt::format(" (mapping {})", fmt::join(score.mappings, ", ")),
                           text);
}

/// Returns the seconds of each component; null unless the row's step is predicted.
ordered_json components_json(const ScoredQuantity& scored) {
  if (!scored.components) return nullptr;
  ordered_json components = ordered_json::object();
  for (std::size_t i = 0; i < scored.components->size(); ++i) {
    components[std::string(component_name(static_cast<TimeComponent>(i)))] = (*scored.components)[i].count();
  }
  return components;
}

ordered_json statistics_json(const ErrorStatistics& statistics) {
  if (statistics.count == 0) return nullptr;
  return {{"count", statistics.count},
          {"mape_pct", statistics.mean_pct},
          {"median_pct", statistics.median_pct},
          {"max_pct", statistics.worst_pct},
          {"bias_pct", statistics.bias_pct}};
}

std::string fit_text(const FitResult& fit) {
  TextTable constants{.head = {"constant", "preset", "fitted"}};
  for (std::size_t i = 0; i < fit.constants.size(); ++i) {
    constants.rows.push_back(
        {fit.constants[i].path, fmt::format("{:.4g}", fit.preset[i]), fmt::format("{:.4g}", fit.fitted[i])});
  }
  TextTable errors{.head = {"times", "rows", "mean", "median", "worst", "bias"}};
  const auto add = [&](std::string_view what, const ErrorStatistics& statistics) {
    errors.rows.push_back({std::string(what), std::to_string(statistics.count), pct(statistics.mean_pct),
                           pct(statistics.median_pct), pct(statistics.worst_pct), signed_pct(statistics.bias_pct)});
  };
  add("presets, half that is fitted", fit.zero_seen);
  add("presets, half that is not", fit.zero_unseen);
  add("fitted, half that is fitted", fit.fitted_seen);
  add("fitted, half that is not", fit.fitted_unseen);
  const std::string tables = to_text(constants) + "\n" + to_text(errors);
  if (fit.folds.empty()) {
    return fmt::format("\nfitted on {} groups of rows, judged on {} others\n{}", fit.seen_groups, fit.unseen_groups,
                       tables);
  }
  TextTable folds{.head = {"left out", "rows", "presets", "fitted on the others", "worst", "bias", "constants"}};
  for (const FitFold& fold : fit.folds) {
    folds.rows.push_back({fold.left_out, std::to_string(fold.unseen.count), pct(fold.preset_unseen.mean_pct),
                          pct(fold.unseen.mean_pct), pct(fold.unseen.worst_pct), signed_pct(fold.unseen.bias_pct),
                          fmt::format("{:.3g}", fmt::join(fold.fitted, " "))});
  }
  return fmt::format("\neach of {} groups judged by a fit on the others; fitted: the folds' mean\n{}\n{}",
                     fit.folds.size(), tables, to_text(folds));
}

ordered_json fit_json(const FitResult& fit) {
  ordered_json constants = ordered_json::array();
  for (std::size_t i = 0; i < fit.constants.size(); ++i) {
    constants.push_back({{"path", fit.constants[i].path}, {"preset", fit.preset[i]}, {"fitted", fit.fitted[i]}});
  }
  ordered_json folds = ordered_json::array();
  for (const FitFold& fold : fit.folds) {
    folds.push_back({{"left_out", fold.left_out},
                     {"fitted", fold.fitted},
                     {"preset_unseen", statistics_json(fold.preset_unseen)},
                     {"unseen", statistics_json(fold.unseen)}});
  }
  return {{"constants", constants},
          {"folds", folds},
          {"seen_groups", fit.seen_groups},
          {"unseen_groups", fit.unseen_groups},
          {"zero_seen", statistics_json(fit.zero_seen)},
          {"zero_unseen", statistics_json(fit.zero_unseen)},
          {"fitted_seen", statistics_json(fit.fitted_seen)},
          {"fitted_unseen", statistics_json(fit.fitted_unseen)}};
}

}  // namespace

std::vector<ScoredQuantity> furthest_off(const SourceScore& score, std::size_t count) {
  std::vector<ScoredQuantity> order = score.quantities;
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [](const ScoredQuantity& scored) { return std::abs(error_pct(scored)); });
  order.resize(std::min(order.size(), count));
  return order;
}

std::vector<std::pair<std::string, int>> skip_reasons(const SourceScore& score) {
  std::map<std::string, int> counts;
  for (const SkippedRow& skipped : score.skipped) ++counts[skipped.reason];
  std::vector<std::pair<std::string, int>> reasons(counts.begin(), counts.end());
  std::ranges::stable_sort(reasons, std::ranges::greater{}, &std::pair<std::string, int>::second);
  return reasons;
}

std::string score_text(const std::vector<SourceScore>& scores, const std::optional<FitResult>& fit, int worst) {
  TextTable table{.head = {"file", "quantity", "rows", "compared", "mean", "median", "worst", "bias"}};
  std::string notes, furthest;
  for (const SourceScore& score : scores) {
    add_statistics(table, score, "step time", score.step_time);
    if (score.step_time_uncorrected) {
      add_statistics(table, score, "step time, as printed", *score.step_time_uncorrected);
    }
    add_statistics(table, score, "memory", score.memory);
    add_statistics(table, score, "layer time", score.layer_time);
    for (const KindStatistics& kind : score.kinds) add_statistics(table, score, kind_label(kind), kind.errors);
    notes += notes_text(score);
    if (worst > 0) furthest += worst_text(score, worst);
  }
  return (table.rows.empty() ? std::string("No row could be compared.\n") : to_text(table)) + notes +
         (fit ? fit_text(*fit) : "") + furthest;
}

ordered_json score_json(const std::vector<SourceScore>& scores, const std::optional<FitResult>& fit) {
  ordered_json sources = ordered_json::array(), rows = ordered_json::array();
  for (const SourceScore& score : scores) {
    ordered_json skipped = ordered_json::array(), kinds = ordered_json::array();
    for (const KindStatistics& kind : score.kinds) {
      kinds.push_back(
          {{"quantity", quantity_name(kind.quantity)}, {"kind", kind.kind}, {"errors", statistics_json(kind.errors)}});
    }
    for (const SkippedRow& row : score.skipped) skipped.push_back({{"id", row.id}, {"reason", row.reason}});
    sources.push_back({{"file", score.file},
                       {"mappings", score.mappings},
                       {"rows", score.rows},
                       {"scored", score.scored},
                       {"skipped", skipped},
                       {"step_time", statistics_json(score.step_time)},
                       {"memory", statistics_json(score.memory)},
                       {"layer_time", statistics_json(score.layer_time)},
                       {"kinds", kinds},
                       {"step_time_uncorrected",
                        score.step_time_uncorrected ? statistics_json(*score.step_time_uncorrected) : nullptr},
                       {"corrections", score.corrections},
                       {"assumptions", score.assumptions},
                       {"limits", score.limits},
                       {"fits",
                        {{"running_rows", score.fits.running_rows},
                         {"refused_running", score.fits.refused_running},
                         {"out_of_memory_rows", score.fits.out_of_memory_rows},
                         {"accepted_out_of_memory", score.fits.accepted_out_of_memory}}},
                       {"rank_correlation", or_null(score.rank_correlation)},
                       {"top1_regret_pct", or_null(score.top1_regret_pct)}});
    for (const ScoredQuantity& scored : score.quantities) {
      ordered_json uncorrected = nullptr;
      if (scored.predicted_uncorrected) {
        ScoredQuantity printed = scored;
        printed.predicted = *scored.predicted_uncorrected;
        uncorrected = error_pct(printed);
      }
      rows.push_back({{"file", score.file},
                      {"id", scored.id},
                      {"source", scored.source},
                      {"stack", scored.stack},
                      {"framework", framework_known_name(scored.traits.framework)},
                      {"device", scored.traits.device},
                      {"devices", scored.traits.devices},
                      {"kind", scored.kind},
                      {"quantity", quantity_name(scored.quantity)},
                      {"predicted", scored.predicted},
                      {"measured", scored.measured},
                      {"error_pct", error_pct(scored)},
                      {"uncorrected_error_pct", uncorrected},
                      {"components_s", components_json(scored)}});
    }
  }
  return {{"sources", sources}, {"rows", rows}, {"fit", fit ? fit_json(*fit) : ordered_json(nullptr)}};
}

}}  // namespace plumb::tools
