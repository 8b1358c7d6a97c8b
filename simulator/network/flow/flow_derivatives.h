#pragma once
// The ends of flows as functions of their bytes, of the rates that they reach alone, and of the links' capacities.
//
// Between two changes of its speed x a flow does x dt of its work w, the time that it takes alone. So, with changes at
// t_0 (its start) < t_1 < ... < t_n, it ends at t_n + w_n / x_n, where w_0 = w and w_k+1 = w_k - x_k (t_k+1 - t_k). Its
// speed is rate / cap. The rate is its cap, or weight * level of the link that holds it back. That level is the
// capacity that other flows leave, divided by the weights of the flows that the link holds back
// (simulator/network/flow/max_min.h). All of these are smooth away from ties, and are put on the tape as the engine
// goes.

#include <cstdint>
#include <vector>

#include "schedules/time.h"
#include "simulator/network/flow/derivative_tape.h"
#include "simulator/network/flow/max_min.h"

namespace plumb { inline namespace simulator {

/// A component of flows whose rates are fair now.
struct SharedComponent {
  const std::vector<std::int32_t>& flows;  ///< slots, in the order of the problem
  const std::vector<std::int32_t>& links;  ///< in the order of the problem
  const MaxMinProblem& problem;
  const std::vector<std::int32_t>& held_by;  ///< [flow of the problem] MaxMinSolver::held_by()
  const std::vector<std::int32_t>& filled;   ///< MaxMinSolver::filled()
  const std::vector<double>& rates;          ///< [flow of the problem]
};

class FlowDerivatives {
 public:
  /// `capacity` is the number of the first link's capacity.
  FlowDerivatives(DerivativeTape& tape, std::int32_t capacity) : tape_(tape), capacity_(capacity) {}

  /// Starts a flow at the tape's moment; `work` is the number of its time alone, `cap` that of its rate alone.
  void start(std::int32_t slot, SimTime alone, std::int32_t work, std::int32_t cap);

  /// Gives the flows of the component other rates from `now` on, the moment `since`.
  void share(const SharedComponent& component, SimTime now, DerivativeTape::Node since);

  /// Returns the moment at which a flow has started.
  DerivativeTape::Node start_of(std::int32_t slot) const { return states_[slot].since_node; }

  /// Returns the moment at which a flow ends.
  DerivativeTape::Node end(std::int32_t slot);

 private:
  struct State {
    DerivativeTape::Node work_node = DerivativeTape::kConstant;
    DerivativeTape::Node since_node = DerivativeTape::kConstant;
    DerivativeTape::Node speed_node = DerivativeTape::kConstant;
    std::int32_t cap = 0;  ///< number
    SimTime since{0};
    double speed = 0;
    double work_left_ps = 0;  ///< at `since`
  };
  void put_levels(const SharedComponent& component);

  DerivativeTape& tape_;
  std::int32_t capacity_;
  std::vector<State> states_;                        ///< [slot]
  std::vector<DerivativeTape::Node> levels_;         ///< [link of the component]
  std::vector<std::vector<std::int32_t>> crossing_;  ///< [link of the component] uses of it
  std::vector<std::int32_t> flow_of_use_;
  std::vector<DerivativeTape::Term> terms_;
};

}}  // namespace plumb::simulator
