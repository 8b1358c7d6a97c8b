#include "tools/pages/whatif_page.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/spec/short_layout.h"
#include "tools/pages/simulation_page.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/whatif_report.h"

namespace plumb { inline namespace tools {
namespace {

/// Adds a chart of one quantity over the last key. `of` returns the quantity of a prediction.
template <typename Of>
void add_sweep(Page& page, const std::string& title, const AxisQuantity& y, const std::vector<WhatIfRow>& rows,
               const Of& of) {
  const std::vector<SweepLine> lines = sweep_lines(rows);
  AxisQuantity x{.name = rows.front().values.back().first};
  const bool are_numbers =
      std::ranges::all_of(rows, [](const WhatIfRow& row) { return row.values.back().second.is_number(); });
  if (!are_numbers) x.names = lines.front().x_values;
  std::vector<PointSeries> series;
  for (const SweepLine& line : lines) {
    PointSeries& one = series.emplace_back(PointSeries{.name = line.name.empty() ? y.name : line.name, .joined = true});
    for (std::size_t i = 0; i < line.rows.size(); ++i) {
      const WhatIfRow& row = *line.rows[i];
      if (!row.prediction) continue;
      one.points.push_back({.x = are_numbers ? row.values.back().second.get<double>() : static_cast<double>(i),
                            .y = of(*row.prediction),
                            .label = short_text(row.layout)});
    }
  }
  add_points(page, title, x, y, series);
}

}  // namespace

Page whatif_page(const Plan& plan, const std::vector<WhatIfRow>& rows,
                 const std::vector<ResourceSensitivity>& by_resource) {
  Page page{.title = fmt::format("{} on {}: what if", plan.model.name, plan.cluster.name)};
  const auto step = [](const Prediction& prediction) { return step_time(prediction.step).count(); };
  const auto rate = [](const WhatIfRow& row) {
    if (!row.prediction) return 0.0;
    const StepRates& rates = row.prediction->rates;
    return rates.tokens_per_second > 0 ? rates.tokens_per_second : rates.samples_per_second;
  };
  const auto most = std::ranges::max_element(rows, {}, rate);
  add_verdict(page,
              most->prediction
                  ? fmt::format("the most {}, {:.0f} a second, are trained with {} as {}: {} a step",
                                most->prediction->rates.tokens_per_second > 0 ? "tokens" : "samples", rate(*most),
                                values_text(*most), short_text(most->layout), duration_text(step(*most->prediction)))
                  : "no row is feasible",
              most->prediction.has_value());
  add_note(page, stack_text(plan.training));
  for (const std::string& sentence : infeasible_rows(rows)) add_note(page, sentence);
  for (const std::string& sentence : idle_keys(rows)) add_note(page, sentence);
  add_sweep(page, "Step time", {.name = "step time", .unit = "s"}, rows, step);
  add_sweep(page, "Memory of the fullest rank", {.name = "memory", .unit = "B"}, rows,
            [](const Prediction& of) { return static_cast<double>(std::ranges::max(of.step.peak_memory_bytes)); });
  add_table(page, "All rows", whatif_table(rows, false));
  add_binding(page, by_resource);
  return page;
}

}}  // namespace plumb::tools
