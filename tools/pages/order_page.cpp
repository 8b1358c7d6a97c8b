#include "tools/pages/order_page.h"

#include <fmt/format.h>

#include "schedules/forms/text_form.h"
#include "tools/pages/simulation_page.h"
#include "traces/idle_causes.h"

namespace plumb { inline namespace tools {

Page order_page(const FoundSchedule& found, const Simulation& simulation, const SearchHistory& history,
                const std::string& verdict, const std::string& certificate) {
  Page page{.title = fmt::format("{}: {} ranks, {} micro-batches", found.schedule.name, found.schedule.ranks.size(),
                                 found.schedule.microbatches)};
  add_verdict(page, verdict, found.time == found.bound.time);
  add_note(page, certificate);
  PointSeries best{.name = "the best so far", .joined = true}, bound{.name = "the bound", .joined = true};
  for (std::size_t i = 0; i < history.times.size(); ++i) {
    const auto number = static_cast<double>(i + 1);
    best.points.push_back({.x = number, .y = seconds(SimTime{history.times[i]})});
    bound.points.push_back({.x = number, .y = seconds(SimTime{history.bounds[i]})});
  }
  if (!best.points.empty())
    bound.points.back().y = seconds(SimTime{found.bound.time});  // an exhaustive search raises it at its end
  add_points(page, "The course of the search", {.name = "improvement"}, {.name = "time", .unit = "s"}, {best, bound});
  ReportContext context{.idle = idle_by_cause(simulation.timeline)};
  add_simulation(page, simulation, context, nullptr);
  TextTable terms{.head = {"time", "what the bound adds up"}};
  for (const BoundTerm& term : found.bound.terms)
    terms.rows.push_back({duration_text(seconds(SimTime{term.time})), term.what});
  add_table(page, fmt::format("What binds is {}", found.bound.reason), terms);
  add_command(page, "The order", to_text(found.schedule));
  return page;
}

}}  // namespace plumb::tools
