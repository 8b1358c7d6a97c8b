#include "tools/reports/left_out_report.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

std::string quantity_of(bool of_memory) {
  return of_memory ? "memory" : "step time";
}

std::string one_digit(double value) {
  return fmt::format("{:.1f}", value);
}

std::vector<std::string> cells_of(const LeftOutGroup& group, const std::string& by) {
  const std::string name = by == "each-source" || group.left_out == group.source
                               ? group.left_out
                               : fmt::format("{}: {}", group.left_out, group.source);
  return {quantity_of(group.of_memory),
          std::string(framework_known_name(group.framework)),
          name,
          std::to_string(group.errors.count),
          one_digit(group.errors.mean_pct),
          one_digit(group.errors.median_pct),
          fmt::format("{:+.1f}", group.errors.bias_pct),
          fmt::format("{:.0f}", 100 * group.coverage_ratio),
          one_digit(group.median_half_width_pct)};
}

const std::vector<std::string> kGroupHead = {"quantity", "framework", "left out",        "rows",      "mean",
                                             "median",   "bias",      "in the interval", "half-width"};
const std::vector<std::string> kSummaryHead = {"quantity", "framework", "groups",          "mean",
                                               "bias",     "median",    "in the interval", "half-width"};

struct Summary {
  std::string quantity;
  std::string framework;
  LeftOutSummary figures;
};

/// Returns the sums over the groups of each quantity and framework, and of each quantity.
std::vector<Summary> summaries_of(const LeftOut& left_out) {
  std::vector<Summary> summaries;
  const auto add = [&](bool of_memory, const std::string& name, const auto& is_taken) {
    std::vector<LeftOutGroup> groups;
    std::ranges::copy_if(left_out.groups, std::back_inserter(groups), [&](const LeftOutGroup& group) {
      return group.of_memory == of_memory && is_taken(group.framework);
    });
    if (!groups.empty()) summaries.push_back({quantity_of(of_memory), name, summary_of(groups)});
  };
  for (const bool of_memory : {false, true}) {
    for (int i = 0; i < kFrameworkKnownCount; ++i) {
      const auto known = static_cast<FrameworkKnown>(i);
      add(of_memory, std::string(framework_known_name(known)),
          [known](FrameworkKnown framework) { return framework == known; });
    }
    add(of_memory, "all but own", [](FrameworkKnown framework) { return framework != FrameworkKnown::kOwn; });
  }
  return summaries;
}

std::vector<std::string> cells_of(const Summary& summary) {
  const LeftOutSummary& figures = summary.figures;
  return {summary.quantity,
          summary.framework,
          std::to_string(figures.groups),
          one_digit(figures.mean_pct),
          fmt::format("{:+.1f}", figures.bias_pct),
          one_digit(figures.median_error_pct),
          one_digit(100 * figures.coverage_ratio),
          one_digit(figures.median_half_width_pct)};
}

std::string markdown_row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string markdown_head(const std::vector<std::string>& cells) {
  return markdown_row(cells) + markdown_row(std::vector<std::string>(cells.size(), "---"));
}

std::string claims_page(const std::vector<SourceScore>& scores) {
  std::set<std::string> rows;
  for (const SourceScore& score : scores) {
    for (const PublishedError& error : score.published) {
      rows.insert(markdown_row({error.who, score.file, error.quantity, one_digit(error.mean_pct), error.note}));
    }
  }
  if (rows.empty()) return "";
  return "\nWhat other predictors claim of their errors, as they print it: most were fitted to such rows.\n\n" +
         markdown_head({"predictor", "rows of", "quantity", "mean", "said of it"}) +
         fmt::format("{}", fmt::join(rows, ""));
}

}  // namespace

std::string left_out_text(const LeftOut& left_out) {
  TextTable groups{.head = kGroupHead}, sums{.head = kSummaryHead};
  for (const LeftOutGroup& group : left_out.groups) groups.rows.push_back(cells_of(group, left_out.by));
  for (const Summary& summary : summaries_of(left_out)) sums.rows.push_back(cells_of(summary));
  return fmt::format("\nleft out in turn ({}), and judged by intervals fitted on the others; all in per cent\n{}\n{}",
                     left_out.by, to_text(groups), to_text(sums));
}

std::string left_out_page(const LeftOut& left_out, const std::vector<SourceScore>& scores) {
  std::string text =
      "## Rows left out\n\nWhat you may expect of a run that is not here. Each source is left out in its turn: its "
      "rows "
      "are read without anything that is known of the source, and its intervals, which shall hold four of five "
      "measurements, are fitted on the other sources, each of which weighs alike. Where the framework is *named*, its "
      "stack is taken by name. Where it is *assumed*, nothing but model, cluster and layout is typed, and what is left "
      "open is the fastest that fits. Where it is *unknown*, the framework that the row names has no stack. Memory of "
      "named frameworks is read by the mappings of its few sources. *Own* are Plumb's own runs. Means, medians and the "
      "bias are per cent; a half-width is half of an interval over the prediction.\n\n" +
      markdown_head(kSummaryHead);
  for (const Summary& summary : summaries_of(left_out)) text += markdown_row(cells_of(summary));
  text += claims_page(scores) + "\n" + markdown_head(kGroupHead);
  for (const LeftOutGroup& group : left_out.groups) text += markdown_row(cells_of(group, left_out.by));
  return text + "\n## Rows by source\n\nWith all that is known of each source.\n\n";
}

ordered_json to_json(const LeftOut& left_out) {
  ordered_json groups = ordered_json::array(), sums = ordered_json::array();
  for (const LeftOutGroup& group : left_out.groups) {
    groups.push_back({{"left_out", group.left_out},
                      {"source", group.source},
                      {"framework", framework_known_name(group.framework)},
                      {"quantity", quantity_of(group.of_memory)},
                      {"rows", group.errors.count},
                      {"mean_pct", group.errors.mean_pct},
                      {"bias_pct", group.errors.bias_pct},
                      {"coverage_ratio", group.coverage_ratio},
                      {"median_half_width_pct", group.median_half_width_pct}});
  }
  for (const Summary& summary : summaries_of(left_out)) {
    sums.push_back({{"quantity", summary.quantity},
                    {"framework", summary.framework},
                    {"groups", summary.figures.groups},
                    {"mean_pct", summary.figures.mean_pct},
                    {"bias_pct", summary.figures.bias_pct},
                    {"coverage_ratio", summary.figures.coverage_ratio},
                    {"median_half_width_pct", summary.figures.median_half_width_pct},
                    {"median_error_pct", summary.figures.median_error_pct}});
  }
  return {{"by", left_out.by}, {"groups", groups}, {"sums", sums}, {"error_bars", to_json(left_out.bars)}};
}

}}  // namespace plumb::tools
