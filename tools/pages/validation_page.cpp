#include "tools/pages/validation_page.h"

#include <fmt/format.h>

#include "tools/pages/timeline_block.h"
#include "tools/reports/comparison_report.h"
#include "tools/reports/time_by_cause.h"
#include "traces/idle_causes.h"
#include "traces/statistics.h"

namespace plumb { inline namespace tools {
namespace {

void add_causes(Page& page, const Comparison& comparison, const Timeline& predicted) {
  std::vector<Difference> causes;
  for (const ErrorCause& cause : comparison.causes) {
    causes.push_back({.name = cause_text(cause, predicted),
                      .value = seconds(cause.time.predicted - cause.time.measured),
                      .label = fmt::format("predicted {}, measured {}", duration_text(seconds(cause.time.predicted)),
                                           duration_text(seconds(cause.time.measured)))});
  }
  add_differences(page, "The error of the step by cause: predicted less measured", "s", causes);
}

void add_times(Page& page, const Comparison& comparison) {
  const std::vector<ChartKind> kinds{{.name = "busy"}, {.name = "idle"}, {.name = "overhead"}};
  std::vector<Bar> bars;
  for (std::size_t rank = 0; rank < comparison.ranks.size(); ++rank) {
    const RankComparison& of = comparison.ranks[rank];
    for (const auto& [name, side] :
         {std::pair{"predicted", &ComparedTime::predicted}, std::pair{"measured", &ComparedTime::measured}}) {
      bars.push_back(
          {.name = fmt::format("rank {} {}", rank, name),
           .values = {seconds(of.busy.*side), seconds(of.idle.*side - of.overhead.*side), seconds(of.overhead.*side)}});
    }
  }
  add_bars(page, "Time of each rank", kinds, bars, "s");
}

void add_peaks(Page& page, const Comparison& comparison) {
  std::vector<Bar> bars;
  for (std::size_t rank = 0; rank < comparison.ranks.size(); ++rank) {
    const RankComparison& of = comparison.ranks[rank];
    if (of.measured_peak_bytes == 0) return;  // memory was not measured
    bars.push_back({fmt::format("rank {} predicted", rank), {static_cast<double>(of.predicted_peak_bytes)}});
    bars.push_back({fmt::format("rank {} measured", rank), {static_cast<double>(of.measured_peak_bytes)}});
  }
  add_bars(page, "Memory at the peak of each rank", {{.name = "memory"}}, bars, "B");
}

}  // namespace

Page validation_page(const std::string& title, const Verdict& verdict, const Comparison& comparison,
                     const Timeline& predicted, const Timeline& measured, const std::string& machine) {
  Page page{.title = title};
  add_verdict(page, to_text(verdict), verdict.outcome == Outcome::kPass);
  if (!machine.empty()) add_note(page, machine);
  add_timelines(page, "Predicted, and the median step measured",
                {{.name = "predicted", .timeline = &predicted}, {.name = "measured", .timeline = &measured}});
  add_causes(page, comparison, predicted);
  add_times(page, comparison);
  add_peaks(page, comparison);
  return page;
}

}}  // namespace plumb::tools
