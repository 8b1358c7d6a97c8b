#include "tools/reports/source_errors.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace plumb { inline namespace tools {
namespace {

constexpr double kMostErrorPct = 60;  ///< of the picture's axis

/// Returns the bias of each source's predictions of one quantity, with the range of its rows' errors.
std::vector<Difference> errors_by_source(const std::vector<SourceScore>& scores, Quantity quantity,
                                         ErrorStatistics SourceScore::*statistics) {
  std::vector<Difference> sources;
  for (const SourceScore& score : scores) {
    const ErrorStatistics& of = score.*statistics;
    if (of.count == 0) continue;
    std::vector<double> errors;
    for (const ScoredQuantity& scored : score.quantities)
      if (scored.quantity == quantity) errors.push_back(error_pct(scored));
    const auto [low, high] = std::ranges::minmax(errors);
    sources.push_back({.name = score.file,
                       .value = of.bias_pct,
                       .range = std::pair{low, high},
                       .label = fmt::format("{} rows, mean error {:.1f} %", of.count, of.mean_pct)});
  }
  return sources;
}

std::vector<Difference> errors_left_out(const LeftOut& left_out, bool of_memory) {
  std::vector<Difference> groups;
  for (const LeftOutGroup& group : left_out.groups) {
    if (group.of_memory != of_memory) continue;
    const double half = group.median_half_width_pct;
    groups.push_back({.name = fmt::format("{} ({})", group.left_out, framework_known_name(group.framework)),
                      .value = group.errors.bias_pct,
                      .range = std::pair{-half, half},
                      .label = fmt::format("{} rows, mean error {:.1f} %, {:.0f} % within", group.errors.count,
                                           group.errors.mean_pct, 100 * group.coverage_ratio)});
  }
  return groups;
}

}  // namespace

std::vector<DifferencePanel> error_panels(const std::vector<SourceScore>& scores,
                                          const std::optional<LeftOut>& left_out) {
  std::vector<DifferencePanel> panels{{.title = "Step times, with all that is known of a source",
                                       .rows = errors_by_source(scores, Quantity::kStepTime, &SourceScore::step_time)},
                                      {.title = "Memory, with all that is known of a source",
                                       .rows = errors_by_source(scores, Quantity::kMemory, &SourceScore::memory)}};
  if (!left_out) return panels;
  panels.push_back({.title = fmt::format("Step times, left out in turn ({})", left_out->by),
                    .rows = errors_left_out(*left_out, false)});
  panels.push_back(
      {.title = fmt::format("Memory, left out in turn ({})", left_out->by), .rows = errors_left_out(*left_out, true)});
  return panels;
}

std::string source_errors_svg(const std::vector<DifferencePanel>& panels) {
  return difference_chart_svg("Errors of predictions by source: bias, and range or interval", "%", kMostErrorPct,
                              panels);
}

}}  // namespace plumb::tools
