#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/generators/generators.h"
#include "schedules/generators/groups.h"
#include "schedules/generators/phases.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns the sizes of the groups asked for. Throws ScheduleError if they are so small that the order deadlocks.
std::vector<int> checked_groups(std::string_view name, const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int smallest = parameters.group == 0 ? p : parameters.group;
  if (smallest < p && parameters.microbatches > smallest) {
    throw ScheduleError(fmt::format(
        "{} with groups of {} micro-batches deadlocks on {} ranks: give a group of {} or more", name, smallest, p, p));
  }
  return group_sizes(parameters.microbatches, smallest);
}

/// Returns the one order behind both schedules: a rank's forwards and input gradients (or whole backwards) in turns of
/// its chunks. The last rank starts its first backward once the first group has passed all of its chunks; each rank
/// before it runs `forwards_by_hop` more forwards ahead.
Schedule interleaved_order(std::string_view name, const ScheduleParameters& parameters, Op backward,
                           int forwards_by_hop) {
  const int p = parameters.ranks;
  const int v = parameters.chunks;
  const std::vector<int> groups = checked_groups(name, parameters);
  Schedule schedule{
      .name = std::string(name), .microbatches = parameters.microbatches, .stages = loop_placement(p, p * v)};
  for (int r = 0; r < p; ++r) {
    const std::vector<int> stages = looped_stages(r, p, v);
    const int warmup = forwards_by_hop * (p - 1 - r) + (v - 1) * groups.front();
    schedule.ranks.push_back(
        one_forward_one_backward(turns_of_chunks(Op::kForward, stages, groups),
                                 turns_of_chunks(backward, {stages.rbegin(), stages.rend()}, groups), warmup));
  }
  return schedule;
}

}  // namespace

Schedule interleaved_schedule(const ScheduleParameters& parameters) {
  // A rank runs two forwards a hop ahead: they last as long as a forward and a backward need to come back.
  return interleaved_order("interleaved", parameters, Op::kBackward, 2);
}

Schedule interleaved_zero_bubble_schedule(const ScheduleParameters& parameters) {
  Schedule schedule = interleaved_order("izb", parameters, Op::kInputGrad, 1);
  for (int r = 0; r < parameters.ranks; ++r) schedule.ranks[r] = with_weight_grads(schedule.ranks[r], r);
  return schedule;
}

}}  // namespace plumb::schedules
