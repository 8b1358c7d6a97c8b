#pragma once
// One layout on its way from prices to a prediction. It is priced once: the value that the search makes goes on to the
// ranking on shared links, to the plan, and to the simulation with a timeline.
//
//   Pricing pricing(model, cluster, training);
//   Evaluation evaluation = evaluate(pricing, layout);
//   evaluation.simulation.makespan

#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/cluster_network.h"
#include "planner/evaluate/layout_order.h"
#include "planner/evaluate/prediction.h"
#include "planner/evaluate/priced_layout.h"
#include "simulator/simulate.h"

namespace plumb { inline namespace planner {

struct Evaluation {
  Layout layout;
  PricedLayout priced;
  CostTable costs;  ///< [stage] the prices that are simulated; links are those of a topology where one is given
  std::vector<std::vector<Layer>> layers;  ///< [model part]; empty lists where the executor does not run a graph
  Schedule lowered;                        ///< empty where evaluate_sums() did not need it
  std::optional<NetworkSpec> network;      ///< whose links the transfers share; nothing where each has its own
  std::string why_private;                 ///< the reason if shared links were asked for and are not simulated
  Simulation simulation;
  StepRates rates;
  std::string infeasible;  ///< why it cannot exist or does not fit, and the nearest change that helps; empty: it fits
  bool exists = true;      ///< false: the layout cannot exist, and nothing else is told than `infeasible`
};

struct EvaluationOptions {
  SimulationOptions simulation;
  std::optional<NetworkOptions> network;  ///< nothing: each transfer has its links to itself, which is quicker
  Receives receives = Receives::kEarly;
  std::optional<ReshardingKind> resharding;  ///< between meshes of different shape; nothing: the fastest of each two
};

/// Simulates the layout in `order`: order_of(), or a schedule of the user's own with layout.pipeline ranks. An
/// asynchronous schedule is a whole run, whose time counts as the step's. `priced` is price_layout() of both. Throws as
/// cluster_network and simulate do.
Evaluation evaluate(Pricing& pricing, const Layout& layout, PricedLayout priced, const Schedule& order,
                    const EvaluationOptions& options = {});

/// Evaluates the layout in the order that it names; `priced` is price_layout() of it, or is made. Without a timeline,
/// and where nothing is asked of the network, a very long run is told from its steady state, which knows no shared
/// links. Throws as price_layout does, too.
Evaluation evaluate(Pricing& pricing, const Layout& layout, PricedLayout priced, const EvaluationOptions& options);
Evaluation evaluate(Pricing& pricing, const Layout& layout, const EvaluationOptions& options = {});

/// Returns the sums of evaluate() without network and timeline. The order is not made in full where its steady state is
/// proven (simulator/steady_state.h).
Evaluation evaluate_sums(Pricing& pricing, const Layout& layout, PricedLayout priced, Sends sends = Sends::kBuffered);
Evaluation evaluate_sums(Pricing& pricing, const Layout& layout);

/// Rates of a step of that length on the devices of `cluster`.
StepRates rates_of(const Pricing& pricing, const ClusterSpec& cluster, SimTime makespan);

Prediction prediction_of(const Evaluation& evaluation);

/// Returns the notes about the split and the links that a reader should see.
std::vector<std::string> notes_of(const Evaluation& evaluation);

}}  // namespace plumb::planner
