#pragma once
// `plumb compare` says how a run that somebody measured compares with its plan.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/evaluate/error_bar.h"
#include "planner/observe/explaining_figures.h"
#include "planner/observe/layout_changes.h"
#include "planner/observe/observed_run.h"

namespace plumb { inline namespace tools {

/// All that is said of a run and its plan.
struct ObservedReport {
  std::string plan;   ///< the model, the cluster and the layout
  std::string stack;  ///< as of stack_text
  std::string file;   ///< of the run
  ObservedRun run;
  ComparedRun compared;
  PredictionIntervals intervals;
  std::vector<ExplainingFigure> figures;
  std::vector<LayoutChange> changes;
};

/// Returns the verdict: how far off the predicted step is, and whether the measured one lies in its interval.
std::string verdict_text(const ObservedReport& report);

/// Begins with the verdict.
std::string to_text(const ObservedReport& report);

nlohmann::ordered_json to_json(const ObservedReport& report);

}}  // namespace plumb::tools
