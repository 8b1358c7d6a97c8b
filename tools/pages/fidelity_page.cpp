#include "tools/pages/fidelity_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/reports/source_errors.h"

namespace plumb { inline namespace tools {
namespace {

void add_scatter(Page& page, const std::vector<SourceScore>& scores) {
  std::vector<PointSeries> series;
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const SourceScore& score : scores) {
    PointSeries& one = series.emplace_back(PointSeries{.name = score.file});
    for (const ScoredQuantity& scored : score.quantities) {
      if (scored.quantity != Quantity::kStepTime) continue;
      one.points.push_back({.x = scored.measured, .y = scored.predicted, .label = scored.id});
      least = std::min({least, scored.measured, scored.predicted});
      most = std::max({most, scored.measured, scored.predicted});
    }
  }
  if (most == 0) return;
  series.push_back({.name = "predicted as measured",
                    .color = "#79706e",
                    .points = {{.x = least, .y = least}, {.x = most, .y = most}},
                    .joined = true});
  add_points(page, "Step times", {.name = "measured", .unit = "s", .logarithmic = true},
             {.name = "predicted", .unit = "s", .logarithmic = true}, series);
}

}  // namespace

Page fidelity_page(const std::vector<SourceScore>& scores, const std::optional<LeftOut>& left_out) {
  Page page{.title = "How far predictions are off"};
  int rows = 0, scored = 0;
  double error = 0;
  int sources = 0;
  for (const SourceScore& score : scores) {
    rows += score.rows;
    scored += score.scored;
    error += score.step_time.count > 0 ? score.step_time.mean_pct : 0;
    sources += score.step_time.count > 0 ? 1 : 0;
  }
  std::string verdict = fmt::format("{} of {} rows of {} files were compared", scored, rows, scores.size());
  if (sources > 0)
    verdict += fmt::format("; the step times of a source are off by {:.1f} % in the mean", error / sources);
  add_verdict(page, verdict, scored > 0);
  add_note(page,
           "errors are 100 (predicted / measured - 1); a bar is a source's bias, the line across it the range of its "
           "rows, or the interval of a source that was left out");
  for (const DifferencePanel& panel : error_panels(scores, left_out))
    add_differences(page, panel.title, "%", panel.rows);
  add_scatter(page, scores);
  return page;
}

}}  // namespace plumb::tools
