#pragma once
// `plumb plan --html`: the answer of a search as a page.

#include "planner/search/plan.h"
#include "tools/inputs/plan_input.h"
#include "tools/pages/page.h"
#include "tools/reports/simulation_report.h"

namespace plumb { inline namespace tools {

/// The winner with its timeline, and the layouts that no other beats in both step time and memory.
struct PlanPicture {
  Plan best;  ///< with its prediction and intervals
  Simulation simulation;
  ReportContext context;
  SearchResult front;  ///< of SearchOptions::memory_front; empty where it was not searched
};

/// Returns the page: the verdict, the layouts over step time and memory, the ranking, why others lost, and the best
/// one's simulation. The layouts are those that `planned` has learned (SearchOptions::list_learned).
Page plan_page(const PlannedSettings& planned, const PlanPicture& picture);

}}  // namespace plumb::tools
