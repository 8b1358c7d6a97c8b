#pragma once
// Time against memory of the orders that `plumb schedule search --curve` finds, beside those of the catalogue.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "schedules/search/memory_curve.h"
#include "simulator/noise/robustness.h"

namespace plumb { inline namespace tools {

struct CurveAnswer {
  Objective objective = Objective::kSpan;
  std::int64_t activation_units = 0;    ///< as SearchQuestion has it
  std::vector<std::string> placements;  ///< [question]
  std::vector<CurvePoint> points;
  std::vector<Robustness> points_robustness;
  std::vector<GeneratorLoss> losses;
  std::vector<Robustness> losses_robustness;
};

/// Returns two tables: the best order within each memory, and each schedule of the catalogue beside it.
std::string curve_text(const CurveAnswer& answer);

nlohmann::ordered_json curve_json(const CurveAnswer& answer);

/// Returns the chart: time over memory of the found orders, of their bounds, and of each schedule. Schedules in the same
/// place have one name, as in "gpipe, bfs"; that of the placement is behind a schedule's where there are several.
std::string curve_svg(const CurveAnswer& answer);

}}  // namespace plumb::tools
