#pragma once
// The evaluation of a plan on its cluster. It says whether the plan fits, and the nearest change with which it would.

#include <optional>

#include "planner/evaluate/evaluation.h"
#include "planner/search/plan.h"

namespace plumb { inline namespace planner {

/// Evaluates the plan: `pricing` is that of its model, cluster and training, `priced` its layout's prices where they
/// are at hand. A layout that cannot exist is only told so; one that does not fit is simulated all the same. Without a
/// timeline, and where nothing is asked of the network, a very long run is told from its steady state, which knows no
/// shared links.
Evaluation evaluate(Pricing& pricing, const Plan& plan, std::optional<PricedLayout> priced,
                    const EvaluationOptions& options);

/// Evaluates a plan by itself. Messages and data-parallel collectives share the cluster's links, unless `network` says
/// otherwise.
Evaluation evaluate(const Plan& plan, const SimulationOptions& options = {}, const NetworkOptions& network = {},
                    Receives receives = Receives::kEarly);

}}  // namespace plumb::planner
