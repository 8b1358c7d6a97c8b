#pragma once
// The change of the step with each figure of the cluster: peak FLOP/s, memory bandwidth, the links' bandwidths and
// latencies.
//
//   for (const ResourceSensitivity& by : resource_sensitivity(plan, evaluate(plan))) by.figure,
//   by.elasticity
//
// One simulation answers for all figures: the actions of its critical path are priced anew with each figure a little
// larger and a little
// smaller (simulator/path/path_length.h); where transfers share links, all costs and links are, and weighed with the
// derivatives of the step by each of them (simulator/network/network_sensitivity.h). That is the derivative of the
// simulated step away from ties, with stages and schedule as they are.

#include <string>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/search/evaluate_plan.h"
#include "planner/search/plan.h"
#include "simulator/network/network_sensitivity.h"

namespace plumb { inline namespace planner {

struct ResourceSensitivity {
  std::string figure;     ///< its key in a cluster's file, as "device.memory_bandwidth_gb_per_s"
  double elasticity = 0;  ///< -0.4: 1 % more of the figure makes the step 0.4 % shorter
};

/// Returns an elasticity for each figure above 0 that the cluster has. Prices from measured samples do not move with
/// the data sheet. Empty without a critical path where nothing is shared. A topology of the user's own has no figures
/// of the cluster, and links that failed leave the ways that they left.
std::vector<ResourceSensitivity> resource_sensitivity(const Plan& plan, const Evaluation& evaluation);

/// `gradient` is of the evaluation's network, which `options` made.
std::vector<ResourceSensitivity> resource_sensitivity(const Plan& plan, const Evaluation& evaluation,
                                                      const NetworkGradient& gradient, const NetworkOptions& options);

}}  // namespace plumb::planner
