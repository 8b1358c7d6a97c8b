#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns an order in which each rank runs `forwards_by_hop` forwards ahead for every rank behind it.
Schedule one_f_one_b_order(std::string name, const ScheduleParameters& parameters, Op backward, int forwards_by_hop) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  Schedule schedule{.name = std::move(name), .microbatches = m, .stages = loop_placement(p, p)};
  for (int r = 0; r < p; ++r) {
    schedule.ranks.push_back(one_forward_one_backward(each_microbatch(Op::kForward, r, m),
                                                      each_microbatch(backward, r, m), forwards_by_hop * (p - 1 - r)));
  }
  return schedule;
}

/// Splits the backwards. Each rank keeps `by_hop` weight gradients back for every rank ahead of it, and runs as many
/// forwards ahead for every rank behind it, so that all ranks hold equally many activations.
Schedule split_order(std::string name, const ScheduleParameters& parameters, int by_hop) {
  Schedule schedule = one_f_one_b_order(std::move(name), parameters, Op::kInputGrad, by_hop);
  for (int r = 0; r < parameters.ranks; ++r) schedule.ranks[r] = with_weight_grads(schedule.ranks[r], by_hop * r);
  return schedule;
}

}  // namespace

Schedule one_f_one_b_schedule(const ScheduleParameters& parameters) {
  return one_f_one_b_order("1f1b", parameters, Op::kBackward, 1);
}

Schedule eager_one_f_one_b_schedule(const ScheduleParameters& parameters) {
  return one_f_one_b_order("eager-1f1b", parameters, Op::kBackward, 2);
}

Schedule zb_h1_schedule(const ScheduleParameters& parameters) {
  return split_order("zb-h1", parameters, 1);
}

Schedule zb_h2_schedule(const ScheduleParameters& parameters) {
  return split_order("zb-h2", parameters, 2);
}

}}  // namespace plumb::schedules
