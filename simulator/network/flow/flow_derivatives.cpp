#include "simulator/network/flow/flow_derivatives.h"

namespace plumb { inline namespace simulator {

void FlowDerivatives::start(std::int32_t slot, SimTime alone, std::int32_t work, std::int32_t cap) {
  if (slot >= static_cast<std::int32_t>(states_.size())) states_.resize(static_cast<std::size_t>(slot) + 1);
  states_[slot] = {.work_node = tape_.add({DerivativeTape::by(work, 1)}),
                   .since_node = tape_.now,
                   .cap = cap,
                   .work_left_ps = static_cast<double>(alone.count())};
}

/// Puts the links' levels on the tape: (capacity - rates of flows that it does not hold back) / (share * weight of
/// those that it does).
void FlowDerivatives::put_levels(const SharedComponent& component) {
  const MaxMinProblem& problem = component.problem;
  crossing_.assign(component.links.size(), {});
  flow_of_use_.resize(problem.uses.size());
  for (std::size_t f = 0; f < component.flows.size(); ++f) {
    for (auto u = problem.first_use[f]; u < problem.first_use[f + 1]; ++u) {
      flow_of_use_[u] = static_cast<std::int32_t>(f);
      crossing_[problem.uses[u].link].push_back(u);
    }
  }
  levels_.assign(component.links.size(), DerivativeTape::kConstant);
  for (const std::int32_t link : component.filled) {
    double load = 0;
    for (const std::int32_t u : crossing_[link]) {
      const std::int32_t f = flow_of_use_[u];
      if (component.held_by[f] == link) load += problem.uses[u].share * problem.weights[f];
    }
    terms_.assign(1, DerivativeTape::by(capacity_ + component.links[link], 1 / load));
    for (const std::int32_t u : crossing_[link]) {
      const std::int32_t f = flow_of_use_[u];
      const std::int32_t held_by = component.held_by[f];
      if (held_by == link) continue;
      const double taken = -problem.uses[u].share / load;
      terms_.push_back(held_by < 0 ? DerivativeTape::by(states_[component.flows[f]].cap, taken)
                                   : DerivativeTape::of(levels_[held_by], taken * problem.weights[f]));
    }
    levels_[link] = tape_.add(terms_);
  }
}

void FlowDerivatives::share(const SharedComponent& component, SimTime now, DerivativeTape::Node since) {
  put_levels(component);
  for (std::size_t f = 0; f < component.flows.size(); ++f) {
    State& state = states_[component.flows[f]];
    if (state.speed > 0) {
      const auto passed = static_cast<double>((now - state.since).count());
      state.work_node =
          tape_.add({DerivativeTape::of(state.work_node, 1), DerivativeTape::of(since, -state.speed),
                     DerivativeTape::of(state.since_node, state.speed), DerivativeTape::of(state.speed_node, -passed)});
      state.work_left_ps -= state.speed * passed;
    }
    state.since = now;
    state.since_node = since;
    const double cap = component.problem.caps[f];
    const std::int32_t held_by = component.held_by[f];
    state.speed = held_by < 0 ? 1 : component.rates[f] / cap;
    state.speed_node = held_by < 0
                           ? DerivativeTape::kConstant
                           : tape_.add({DerivativeTape::of(levels_[held_by], component.problem.weights[f] / cap),
                                        DerivativeTape::by(state.cap, -component.rates[f] / (cap * cap))});
  }
}

DerivativeTape::Node FlowDerivatives::end(std::int32_t slot) {
  const State& state = states_[slot];
  return tape_.add({DerivativeTape::of(state.since_node, 1), DerivativeTape::of(state.work_node, 1 / state.speed),
                    DerivativeTape::of(state.speed_node, -state.work_left_ps / (state.speed * state.speed))});
}

}}  // namespace plumb::simulator
