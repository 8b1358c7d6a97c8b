#include "schedules/bounds/order_question.h"

#include <algorithm>

namespace plumb { inline namespace schedules {

std::string_view objective_name(Objective objective) {
  return objective == Objective::kSpan ? "span" : "makespan";
}

int slices_of(const Schedule& schedule) {
  int slices = 1;
  for (const std::vector<Action>& actions : schedule.ranks) {
    for (const Action& action : actions) {
      if (action.op == Op::kForward) slices = std::max(slices, action.part + 1);
    }
  }
  return slices;
}

ActivationMemory counted_activations(const OrderQuestion& question, int most) {
  const std::size_t stages = question.frame.stages.size();
  ActivationMemory memory{.activation_bytes = std::vector<std::int64_t>(stages, 1),
                          .released_at_input_grad_bytes = std::vector<std::int64_t>(stages, 0)};
  if (most > 0) memory.max_bytes.assign(static_cast<std::size_t>(question.ranks), most);
  return memory;
}

std::int64_t bytes_added(const ActivationMemory& memory, const Action& action) {
  if (memory.activation_bytes.empty()) return 0;
  const std::int64_t all = memory.activation_bytes[action.stage];
  const std::int64_t early = memory.released_at_input_grad_bytes[action.stage];
  switch (action.op) {
    case Op::kForward:
      return all;
    case Op::kBackward:
      return -all;
    case Op::kInputGrad:
      return -early;
    case Op::kWeightGrad:
      return early - all;
    default:
      return 0;
  }
}

std::int64_t peak_bytes(const ActivationMemory& memory, const std::vector<Action>& actions) {
  std::int64_t held = 0;
  std::int64_t peak = 0;
  for (const Action& action : actions) {
    held += bytes_added(memory, action);
    peak = std::max(peak, held);
  }
  return peak;
}

bool fits_memory(const OrderQuestion& question, const Schedule& order) {
  const std::vector<std::int64_t>& most = question.memory.max_bytes;
  for (std::size_t r = 0; r < most.size(); ++r) {
    if (peak_bytes(question.memory, order.ranks[r]) > most[r]) return false;
  }
  return true;
}

}}  // namespace plumb::schedules
