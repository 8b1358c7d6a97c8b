#include "simulator/network/network_sensitivity.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "simulator/path/sensitivity_sums.h"

namespace plumb { inline namespace simulator {
namespace {

Seconds from_ps(double ps) {
  return Seconds{ps * 1e-12};
}

/// Adds up the derivatives by a program's numbers, by the cost that each number is of.
class Attribution {
 public:
  Attribution(const Schedule& lowered, const CostTable& costs, const NetworkGradient& gradient)
      : gradient_(gradient),
        program_(gradient.program),
        costs_(costs),
        numbers_(numbering(gradient.program, gradient.shared.network)),
        sums_(lowered, costs) {
    for (const auto& rank : lowered.ranks) {
      for (const Action& action : rank) actions_.push_back(&action);
    }
  }

  Sensitivity sensitivity() {
    for (std::int32_t a = 0; a < program_.actions; ++a) add_action(a);
    add_stretches();
    const std::vector<NetworkLink>& links = gradient_.shared.network.links;
    for (std::size_t l = 0; l < links.size(); ++l) {
      const std::string& name = links[l].name;
      sums_.add_capacity(name.substr(0, name.find(':')), -scaled(numbers_.capacity + static_cast<std::int32_t>(l)));
    }
    return sums_.finish();
  }

 private:
  /// Returns the part of the makespan that grows in proportion to that number.
  Seconds scaled(std::int32_t number) const { return from_ps(scaled_ps(gradient_, static_cast<std::size_t>(number))); }

  void add_action(std::int32_t a) {
    const Action& action = *actions_[a];
    const Seconds seconds = scaled(numbers_.alone + a) - scaled(numbers_.rate + a);
    if (!program_.inside.empty()) sums_.add_computing(action.stage, scaled(numbers_.inside + a));
    if (program_.kind[a] == EventKind::kFollower || is_recv(action.op) || receives_weights(action.op)) return;
    if (is_send(action.op) || sends_weights(action.op)) {
      sums_.add_message(action, seconds, scaled(numbers_.latency + a));
    } else if (is_move(action.op)) {
      sums_.add_moves(seconds);
    } else {
      sums_.add({&action, action.overlaps_next ? 2U : 1U}, seconds);
    }
  }

  /// Plans serve all actions of one kind, so that each stretch counts once.
  void add_stretches() {
    const Stretches& all = program_.stretches;
    std::vector<bool> counted(all.stretches.size(), false);
    for (std::size_t a = 0; a < all.plan_of.size(); ++a) {
      const std::int32_t plan = all.plan_of[a];
      if (plan < 0) continue;
      for (std::int32_t phase = all.first_phase[plan]; phase < all.first_phase[plan + 1]; ++phase) {
        for (std::int32_t s = all.phases[phase].first.front(); s < all.phases[phase].first.back(); ++s) {
          if (counted[s]) continue;
          counted[s] = true;
          add_stretch(s, actions_[a + all.stretches[s].action]->stage);
        }
      }
    }
  }

  void add_stretch(std::int32_t s, int stage) {
    const Stretch& stretch = program_.stretches.stretches[s];
    const auto groups = static_cast<std::int32_t>(gradient_.shared.network.inner.size());
    Seconds seconds = scaled(numbers_.stretch + s);
    for (std::int32_t g = 0; g < groups; ++g) seconds -= scaled(numbers_.inner_rate + s * groups + g);
    if (stretch.computes) {
      sums_.add_computing(stage, seconds);
    } else {
      sums_.add_inner(stretch.group, stretch.kind, seconds);
    }
  }

  const NetworkGradient& gradient_;
  const EventProgram& program_;
  const CostTable& costs_;
  EventNumbering numbers_;
  SensitivitySums sums_;
  std::vector<const Action*> actions_;  ///< [action]
};

}  // namespace

std::optional<NetworkGradient> network_gradient(const Schedule& lowered, const CostTable& costs,
                                                const NetworkSpec& network, Sends sends, Replicas replicas) {
  SharedNetwork shared = shared_network(network, lowered, costs, replicas);
  if (shared.plain) shared = shared_network({}, lowered, costs, Replicas::kUnfolded);
  EventProgram program = event_program(lowered, costs, shared.network, sends);
  std::vector<double> numbers = numbers_of(program, shared.network);
  NetworkGradient gradient{
      .shared = std::move(shared), .program = std::move(program), .sends = sends, .numbers = std::move(numbers)};
  DerivativeTape tape;
  EventTimes times;
  try {
    times = event_times(lowered, gradient.program, gradient.shared.network, sends, {.tape = &tape});
  } catch (const std::length_error&) {
    return std::nullopt;
  }
  if (!times.end.empty()) gradient.makespan = *std::ranges::max_element(times.end);
  gradient.by_number = tape.gradient(tape.last, gradient.numbers.size());
  return gradient;
}

Sensitivity sensitivity_of(const Schedule& lowered, const CostTable& costs, const NetworkGradient& gradient) {
  return Attribution(lowered, costs, gradient).sensitivity();
}

std::optional<Seconds> growth(const NetworkGradient& gradient, const Schedule& lowered, const CostTable& costs,
                              const NetworkSpec& network) {
  const NetworkSpec figures = with_figures(gradient.shared, network, lowered);
  const std::vector<double> numbers = numbers_of(event_program(lowered, costs, figures, gradient.sends), figures);
  if (numbers.size() != gradient.numbers.size()) return std::nullopt;
  double ps = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (gradient.by_number[i] != 0) ps += gradient.by_number[i] * (numbers[i] - gradient.numbers[i]);
  }
  return from_ps(ps);
}

}}  // namespace plumb::simulator
