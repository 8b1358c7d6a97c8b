#pragma once
// The evaluation of a plan on its cluster. It says whether the plan fits, and the nearest change with which it would.

#include <optional>

#include "planner/evaluate/evaluation.h"
#include "planner/search/plan.h"

namespace plumb { inline namespace planner {

/// Evaluates the plan: `pricing` is that of its model, cluster and training, `priced` its layout's prices where they
/// are at hand. A layout that cannot exist is only told so; one that does not fit is simulated all the same.
Evaluation evaluate(Pricing& pricing, const Plan& plan, std::optional<PricedLayout> priced,
                    const EvaluationOptions& options);

/// The plan of a layout that was evaluated: its split is fixed, and it promises the evaluation's prediction. `order` is
/// the user's own.
Plan plan_of(const Pricing& pricing, const Evaluation& evaluation, const std::optional<Schedule>& order);

/// Evaluates a plan by itself. Messages and data-parallel collectives share the cluster's links, unless `network` says
/// otherwise.
Evaluation evaluate(const Plan& plan, const SimulationOptions& options = {}, const NetworkOptions& network = {},
                    Receives receives = Receives::kEarly);

}}  // namespace plumb::planner
