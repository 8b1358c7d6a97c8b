#pragma once
// The question of `plumb budget`: what is given, what interrupts the training, and its step on each number of devices.

#include <string>
#include <vector>

#include "planner/budget/reliability_spec.h"
#include "planner/budget/resilience.h"
#include "planner/budget/training_budget.h"
#include "planner/search/plan.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// Returns the preset or the file of --failures with the figures that the arguments give in place of its own, each with
/// the option as its source. Throws UsageError if there is no such preset, and InputError or SpecError with file and place
/// if the file cannot be read.
ReliabilitySpec reliability_input(const BudgetArguments& arguments);

BudgetLimits limits_input(const BudgetArguments& arguments);

/// A plan, or the best layout on a number of devices of a cluster.
struct PlannedStep {
  Plan plan;
  BudgetedStep step;
};

struct PlannedSteps {
  std::vector<PlannedStep> steps;  ///< by cluster as they are listed, and devices
  std::string infeasible;          ///< why the last number of devices has no layout; empty: it has one
};

/// Evaluates the plan or, for a model, searches the best layout on each number of devices of each cluster that the question lists. Throws UsageError if a
/// batch that grows with the devices is no whole number, and as plan_settings does.
PlannedSteps planned_steps(const BudgetArguments& arguments);

}}  // namespace plumb::tools
