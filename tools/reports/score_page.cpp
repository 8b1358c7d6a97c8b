#include "tools/reports/score_page.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tools/reports/score_report.h"

namespace plumb { inline namespace tools {
namespace {

constexpr std::size_t kWorst = 10;

std::string row_of(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string head_of(const std::vector<std::string>& cells) {
  return row_of(cells) + row_of(std::vector<std::string>(cells.size(), "---"));
}

std::string statistics_row(const SourceScore& score, std::string_view what, const ErrorStatistics& statistics,
                           const std::string& others) {
  if (statistics.count == 0) return "";
  return row_of({score.file, std::string(what), std::to_string(score.rows), std::to_string(statistics.count),
                 fmt::format("{:.1f}", statistics.mean_pct), fmt::format("{:.1f}", statistics.median_pct),
                 fmt::format("{:.1f}", statistics.worst_pct), fmt::format("{:+.1f}", statistics.bias_pct), others});
}

std::string others_of(const SourceScore& score, std::string_view quantity) {
  std::vector<std::string> others;
  for (const PublishedError& error : score.published) {
    if (error.quantity != quantity) continue;
    others.push_back(fmt::format("{} {:.4g}{}", error.who, error.mean_pct,
                                 error.note.empty() ? "" : fmt::format(" ({})", error.note)));
  }
  return fmt::format("{}", fmt::join(others, "; "));
}

std::string table_of_sources(const std::vector<SourceScore>& scores) {
  std::string text =
      head_of({"file", "quantity", "rows", "compared", "mean", "median", "worst", "bias", "other predictors, mean"});
  for (const SourceScore& score : scores) {
    text += statistics_row(score, "step time", score.step_time, others_of(score, "step_time"));
    if (score.step_time_uncorrected) {
      text += statistics_row(score, "step time, rows as printed", *score.step_time_uncorrected, "");
    }
    text += statistics_row(score, "memory", score.memory, others_of(score, "memory"));
    text += statistics_row(score, "layer time", score.layer_time, "");
  }
  return text;
}

std::string table_of_kinds(const std::vector<SourceScore>& scores) {
  std::string rows;
  for (const SourceScore& score : scores) {
    for (const KindStatistics& kind : score.kinds) {
      const ErrorStatistics& errors = kind.errors;
      rows += row_of({score.file, kind.quantity == Quantity::kMemory ? "memory" : "step time", kind.kind,
                      std::to_string(errors.count), fmt::format("{:.1f}", errors.mean_pct),
                      fmt::format("{:.1f}", errors.median_pct), fmt::format("{:.1f}", errors.worst_pct),
                      fmt::format("{:+.1f}", errors.bias_pct)});
    }
  }
  if (rows.empty()) return "";
  return "\n## By precision\n\nSources whose rows differ in the precision of products, or of which some have "
         "experts.\n\n" +
         head_of({"file", "quantity", "rows of", "compared", "mean", "median", "worst", "bias"}) + rows;
}

std::string table_of_orders(const std::vector<SourceScore>& scores) {
  std::string rows;
  for (const SourceScore& score : scores) {
    if (!score.rank_correlation) continue;
    rows += row_of(
        {score.file, fmt::format("{:.2f}", *score.rank_correlation), fmt::format("{:.1f}", *score.top1_regret_pct)});
  }
  if (rows.empty()) return "";
  return "\n## Order of layouts\n\nRows of one model on as many devices of one kind with the same batch: Spearman's "
         "rank correlation of prediction and measurement, and how much slower the layout predicted best is than the "
         "one "
         "measured best, %.\n\n" +
         head_of({"file", "rank correlation", "regret"}) + rows;
}

std::string notes_of(const std::vector<SourceScore>& scores) {
  std::string text = "\n## How rows were read\n";
  for (const SourceScore& score : scores) {
    std::string lines;
    for (const std::string& correction : score.corrections) lines += fmt::format("* corrected: {}\n", correction);
    for (const std::string& assumption : score.assumptions) lines += fmt::format("* assumed: {}\n", assumption);
    for (const auto& [reason, count] : skip_reasons(score)) lines += fmt::format("* skipped {}: {}\n", count, reason);
    for (const std::string& limit : score.limits) lines += fmt::format("* limit: {}\n", limit);
    const FitJudgement& fits = score.fits;
    if (!fits.refused_running.empty()) {
      lines += fmt::format("* ran, and predicted not to fit: {} of {} rows ({})\n", fits.refused_running.size(),
                           fits.running_rows, fmt::join(fits.refused_running, ", "));
    }
    if (fits.out_of_memory_rows > 0) {
      lines += fmt::format("* ran out of memory: {} rows, of which {} are predicted to fit\n", fits.out_of_memory_rows,
                           fits.accepted_out_of_memory.size());
    }
    if (lines.empty()) continue;
    text += fmt::format(
        "\n{}{}\n\n{}", score.file,
        score.mappings.empty() ? ", no mapping" : fmt::format(", mapping `{}`", fmt::join(score.mappings, "`, `")),
        lines);
  }
  return text;
}

std::string table_of_worst(const std::vector<SourceScore>& scores) {
  SourceScore all;
  for (const SourceScore& score : scores) {
    for (const ScoredQuantity& scored : score.quantities) {
      if (scored.components) all.quantities.push_back(scored);
    }
  }
  std::vector<std::string> head = {"row", "predicted, s", "measured, s", "error, %"};
  for (int i = 0; i < kTimeComponentCount; ++i) {
    head.emplace_back(component_name(static_cast<TimeComponent>(i)));
  }
  std::string text =
      "\n## The step times furthest off\n\nShares of the predicted step by component, %, the mean over "
      "the pipeline's ranks.\n\n" +
      head_of(head);
  for (const ScoredQuantity& scored : furthest_off(all, kWorst)) {
    std::vector<std::string> cells = {scored.id, fmt::format("{:.4g}", scored.predicted),
                                      fmt::format("{:.4g}", scored.measured),
                                      fmt::format("{:+.1f}", error_pct(scored))};
    for (const Seconds component : *scored.components) {
      cells.push_back(fmt::format("{:.0f}", 100 * component.count() / scored.predicted));
    }
    text += row_of(cells);
  }
  return all.quantities.empty() ? "" : text;
}

std::string fit_section(const FitResult& fit) {
  std::string text =
      fmt::format("\n## Fitted\n\nOn {} groups of rows; judged on {} others.\n\n", fit.seen_groups, fit.unseen_groups) +
      head_of({"constant", "preset", "fitted"});
  for (std::size_t i = 0; i < fit.constants.size(); ++i) {
    text += row_of({fmt::format("`{}`", fit.constants[i].path), fmt::format("{:.4g}", fit.preset[i]),
                    fmt::format("{:.4g}", fit.fitted[i])});
  }
  text += "\n" + head_of({"times", "compared", "mean", "median", "worst", "bias"});
  const auto add = [&](const std::string& what, const ErrorStatistics& statistics) {
    text += row_of({what, std::to_string(statistics.count), fmt::format("{:.1f}", statistics.mean_pct),
                    fmt::format("{:.1f}", statistics.median_pct), fmt::format("{:.1f}", statistics.worst_pct),
                    fmt::format("{:+.1f}", statistics.bias_pct)});
  };
  add("presets, half that is fitted", fit.zero_seen);
  add("presets, half that is not", fit.zero_unseen);
  add("fitted, half that is fitted", fit.fitted_seen);
  add("fitted, half that is not", fit.fitted_unseen);
  return text;
}

constexpr std::string_view kOrigin =
    "The rows are those of the files that the command names: one a source, each row with the paper or repository that "
    "printed it. What stands under `../shared/published` lies beside the source tree and is no part of it. Without "
    "that folder run `plumb score docs/typed_rows.json`, rows of the same form that are part of the tree, or score "
    "files "
    "of your own; the tests that need the folder are skipped and say so.";

}  // namespace

std::string score_page(const std::vector<SourceScore>& scores, const std::optional<FitResult>& fit,
                       const std::string& command, const std::string& left_out) {
  return fmt::format(
             "# Fidelity\n\nWritten by\n\n    {}\n\n{}\n\nErrors are 100 |predicted / measured - 1| in per cent; the "
             "bias is their mean with the sign. Plumb's own runs, predicted and measured, with their spread: "
             "[on this machine's cores](validation.md), [on an emulated cluster](emulated.md).\n\n",
             command, kOrigin) +
         left_out + table_of_sources(scores) + (fit ? fit_section(*fit) : "") + table_of_kinds(scores) +
         table_of_orders(scores) + notes_of(scores) + table_of_worst(scores);
}

}}  // namespace plumb::tools
