#include "tools/pages/plan_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/spec/short_layout.h"
#include "tools/pages/simulation_page.h"
#include "tools/reports/alternatives_report.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/plan_report.h"
#include "tools/reports/ranking_report.h"
#include "tools/reports/step_line.h"

namespace plumb { inline namespace tools {
namespace {

PointSeries::Point point_of(const StepSums& step, const Layout& layout) {
  return {.x = static_cast<double>(std::ranges::max(step.peak_memory_bytes)),
          .y = step_time(step).count(),
          .label = short_text(layout)};
}

/// Returns the layouts that were looked at: those that fit are slower, the others are too large.
std::vector<PointSeries> learned_series(const PlannedSettings& planned) {
  PointSeries slower{.name = "slower", .color = "#a0a8b2"};
  PointSeries large{.name = "too large, at its least time", .color = "#e15759"};
  for (const PlannedQuestion& setting : planned.settings) {
    for (const LearnedLayout& one : setting.search.learned) {
      (one.fits ? slower : large)
          .points.push_back(
              {.x = static_cast<double>(one.peak_bytes), .y = seconds(one.time), .label = short_text(one.layout)});
    }
  }
  return {large, slower};
}

void add_search(Page& page, const PlannedSettings& planned, const PlanPicture& picture) {
  std::vector<PointSeries> series = learned_series(planned);
  PointSeries& front = series.emplace_back(
      PointSeries{.name = "no other is both faster and smaller", .color = "#59a14f", .joined = true});
  for (const Evaluation& one : picture.front.ranked) front.points.push_back(point_of(one.simulation, one.layout));
  PointSeries& ranked = series.emplace_back(PointSeries{.name = "ranked", .color = "#4e79a7"});
  for (const SettingRow& row : planned.rows) {
    const Evaluation& one = evaluation_of(planned, row);
    ranked.points.push_back(point_of(one.simulation, one.layout));
  }
  add_points(page, "The layouts that were looked at",
             {.name = "memory of the fullest rank", .unit = "B", .limit = common_memory_limit(picture.best.cluster)},
             {.name = "step time", .unit = "s"}, series);
}

/// Says why others lost, by counts and, where --explain asked, by each other value of a key.
void add_losers(Page& page, const PlannedSettings& planned) {
  const SearchCounts counts = total_counts(planned);
  const auto bar = [](std::string name, std::int64_t count) {
    return Difference{.name = std::move(name), .value = static_cast<double>(count)};
  };
  add_differences(page, "Why the others lost, by counts", "",
                  {bar("layouts too large", counts.too_large),
                   bar("layouts slower", counts.outrun + counts.simulated - std::ssize(planned.rows)),
                   bar("kinds too large", counts.cores_too_large), bar("kinds that cannot exist", counts.conflicts),
                   bar("degrees out by a bound", counts.families - counts.opened)});
  add_note(page, losers_text(planned));
  std::vector<Difference> axes;
  const SearchResult& search = planned.settings.back().search;
  for (const OtherValue& other : search.other_values) {
    if (!other.best) continue;
    const double longer = step_time(other.best->simulation) / step_time(search.ranked.front().simulation) - 1;
    axes.push_back({.name = fmt::format("{}={}", other.key, other.value),
                    .value = 100 * longer,
                    .label = short_text(other.best->layout)});
  }
  add_differences(page, "How much longer the step is with another value of a key", "%", axes);
}

}  // namespace

Page plan_page(const PlannedSettings& planned, const PlanPicture& picture) {
  const Plan& best = picture.best;
  Page page{.title = fmt::format("{} on {}:{}", best.model.name, best.cluster.name, best.cluster.devices)};
  add_verdict(page, plan_verdict(best), true);
  add_note(page, question_text(best));
  add_note(page, interval_text(best, picture.simulation));
  add_search(page, planned, picture);
  add_table(page, "Ranking", ranking_table(planned));
  add_losers(page, planned);
  add_simulation(page, picture.simulation, picture.context, &best);
  return page;
}

}}  // namespace plumb::tools
