#include "tools/pages/run_page.h"

#include <fmt/format.h>

namespace plumb { inline namespace tools {

Page run_page(const ObservedReport& report) {
  Page page{.title = report.plan};
  const PredictionInterval& interval = report.intervals.step_time;
  const double measured = report.compared.step.measured;
  add_verdict(page, verdict_text(report), measured >= interval.low && measured <= interval.high);
  add_note(page, report.stack);
  add_note(page, fmt::format("{}: {} steps of {}", report.file, report.run.step.observations, report.run.framework));
  std::vector<Difference> errors{{.name = "step",
                                  .value = 100 * error_ratio(report.compared.step),
                                  .range = std::pair{100 * (report.compared.step.predicted / interval.high - 1),
                                                     100 * (report.compared.step.predicted / interval.low - 1)},
                                  .label = "the line is where four of five runs lie"}};
  if (report.compared.memory)
    errors.push_back({.name = "memory of the fullest rank", .value = 100 * error_ratio(*report.compared.memory)});
  std::vector<Bar> bars;
  for (const ComparedPart& part : report.compared.parts) {
    errors.push_back({.name = part.name, .value = 100 * error_ratio(part.most)});
    bars.push_back({part.name + ", predicted", {part.most.predicted}});
    bars.push_back({part.name + ", measured", {part.most.measured}});
  }
  add_differences(page, "Errors of the prediction", "%", errors);
  add_bars(page, "Parts of the step, on the rank with the most", {{.name = "time"}}, bars, "s");
  TextTable figures{.head = {"figure of the cluster", "times"}};
  for (const ExplainingFigure& by : report.figures)
    figures.rows.push_back({by.figure, fmt::format("{:.3g}", by.factor)});
  add_table(page, "Each of these alone would explain the step", figures);
  TextTable changes{.head = {"change of the layout", "step time"}};
  for (const LayoutChange& change : report.changes)
    changes.rows.push_back({change.change, duration_text(step_time(change.evaluation.simulation).count())});
  add_table(page, "Changes that are predicted to be faster", changes);
  return page;
}

}}  // namespace plumb::tools
