#pragma once
// Predicts a step in which messages and collectives share links.
//
//   Simulation shared = simulate(lowered, costs, network);
//   shared.engine == "events";  shared.added   // what sharing costs
//
// The engine without events answers where nothing can share (with_limiting_links leaves no link, no rank is slow and no
// collective slows compute down); then the result is that of simulate() without a network. Otherwise the event engine
// does, on one replica for all that are alike (network/fold.h).

#include "simulator/network/engine/event_engine.h"
#include "simulator/network/fold.h"
#include "simulator/network/topology/network_spec.h"
#include "simulator/simulate.h"

namespace plumb { inline namespace simulator {

enum class Replicas {
  kFolded,    ///< one replica stands for all that are alike
  kUnfolded,  ///< each is simulated
};

/// The part of a network that is simulated: the links that can hold something back, the replicas that are not alike.
struct SharedNetwork {
  NetworkSpec network;
  std::vector<int> first_replica;  ///< [simulated replica] the first replica that it stands for
  bool plain = false;              ///< nothing can share: the compiled engine answers
  std::vector<bool> limiting;      ///< [link of the whole]
  AlikeClasses classes;            ///< with no replicas where none are folded
};

/// Returns that part. Replicas whose `kinds` differ are never alike; empty means one kind. Throws as check_network().
SharedNetwork shared_network(const NetworkSpec& network, const Schedule& lowered, const CostTable& costs,
                             Replicas replicas = Replicas::kFolded, const std::vector<int>& kinds = {});

/// Returns the number of actions, of all replicas, that the event engine would simulate; 0 where the compiled engine
/// answers.
std::int64_t simulated_actions(const SharedNetwork& shared, const Schedule& lowered);

/// Throws SpecError if there are more than kMostSimulatedActions (schedules/limits.h) to simulate.
void require_simulable(const NetworkSpec& simulated, const Schedule& lowered);

/// Returns the same part of a network that differs only in its figures, with the same links and replicas.
NetworkSpec with_figures(const SharedNetwork& shared, const NetworkSpec& other, const Schedule& lowered);

/// Predicts the step. Throws as simulate() without a network does, and SpecError as check_network(), if there are more
/// than kMostSimulatedActions to simulate, and for a burst where the event engine is needed.
Simulation simulate(const Schedule& lowered, const CostTable& costs, const NetworkSpec& network,
                    const SimulationOptions& options = {}, Replicas replicas = Replicas::kFolded);
Simulation simulate(const Schedule& lowered, const CostTable& costs, const SharedNetwork& shared,
                    const SimulationOptions& options = {});

}}  // namespace plumb::simulator
