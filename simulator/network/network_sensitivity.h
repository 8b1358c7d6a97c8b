#pragma once
// Says what a step's time is made of where transfers share links: the derivative of the makespan by every cost and
// every capacity, from one simulation.
//
//   const NetworkGradient gradient = *network_gradient(lowered, costs, network);
//   sensitivity_of(lowered, costs, gradient).shared_links   // "nic_up": 12 % narrower, so much longer
//   growth(gradient, lowered, costs_with_slower_memory, network_of_the_same)
//
// It is exact for small changes away from ties (equal times, a link that is just full), but for the rounding to
// picoseconds. Rates are constant between events, and the dependence of each moment on the others is recorded as the
// engine goes (simulator/network/flow/flow_derivatives.h). Longer prices lower the rate that a transfer reaches alone:
// its bytes stay. All costs longer and all links narrower by one factor make the step longer by that factor, so that
// all sensitivities together are the makespan (Euler's theorem).

#include <optional>

#include "simulator/network/engine/event_numbers.h"
#include "simulator/network/simulate_network.h"
#include "simulator/path/sensitivity.h"

namespace plumb { inline namespace simulator {

struct NetworkGradient {
  SharedNetwork shared;
  EventProgram program;
  Sends sends = Sends::kBuffered;
  SimTime makespan{0};
  std::vector<double> numbers;    ///< numbers_of(program, shared.network)
  std::vector<double> by_number;  ///< derivative of the makespan in ps
};

/// Returns the picoseconds of the makespan that grow in proportion to a number; 0 where it does not count, as for an
/// infinitely wide link.
inline double scaled_ps(const NetworkGradient& gradient, std::size_t number) {
  return gradient.by_number[number] == 0 ? 0 : gradient.by_number[number] * gradient.numbers[number];
}

/// Returns the gradient by the event engine, whether anything can share or not. Returns nothing for a run of so many
/// flows that their record would not fit (DerivativeTape). Throws as simulate() with a network.
std::optional<NetworkGradient> network_gradient(const Schedule& lowered, const CostTable& costs,
                                                const NetworkSpec& network, Sends sends = Sends::kBuffered,
                                                Replicas replicas = Replicas::kFolded);

Sensitivity sensitivity_of(const Schedule& lowered, const CostTable& costs, const NetworkGradient& gradient);

/// Returns to first order how much longer the step is under other costs and a network of other figures, or nothing if
/// actions are then cut into other stretches.
std::optional<Seconds> growth(const NetworkGradient& gradient, const Schedule& lowered, const CostTable& costs,
                              const NetworkSpec& network);

}}  // namespace plumb::simulator
