#include <algorithm>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"

namespace plumb {
namespace {

/// Sizes of the groups that m micro-batches fall into: as many groups as keep each at `smallest` or more, sizes that
/// differ by one at most, the larger first (a group may not run ahead of a larger one after it).
std::vector<int> group_sizes(int m, int smallest) {
  const int rounds = std::max(1, m / smallest);
  std::vector<int> sizes(static_cast<std::size_t>(rounds), m / rounds);
  std::fill_n(sizes.begin(), m % rounds, m / rounds + 1);
  return sizes;
}

}  // namespace

Schedule interleaved_schedule(const ScheduleParameters& parameters) {
  const auto [p, m, v, requested_group] = parameters;
  const int smallest_group = requested_group == 0 ? p : requested_group;
  if (smallest_group < p && m > smallest_group) {
    throw ScheduleError(
        fmt::format("interleaved with groups of {} micro-batches deadlocks on {} ranks: give a group of {} "
                    "or more",
                    smallest_group, p, p));
  }
  const std::vector<int> groups = group_sizes(m, smallest_group);

  Schedule schedule{.name = "interleaved", .microbatches = m, .stages = loop_placement(p, p * v)};
  for (int r = 0; r < p; ++r) {
    std::vector<Action> forwards;
    std::vector<Action> backwards;
    int first = 0;
    for (const int size : groups) {
      for (int chunk = 0; chunk < v; ++chunk) {
        for (int i = first; i < first + size; ++i) {
          forwards.push_back(compute_action(Op::kForward, chunk * p + r, i));
          backwards.push_back(compute_action(Op::kBackward, (v - 1 - chunk) * p + r, i));
        }
      }
      first += size;
    }
    // The last rank starts its first backward once the first group has passed all of its chunks; each rank before it
    // runs two more forwards ahead, the time of a forward and a backward to come back.
    const int warmup = 2 * (p - 1 - r) + (v - 1) * groups.front();
    schedule.ranks.push_back(one_forward_one_backward(forwards, backwards, warmup));
  }
  return schedule;
}

}  // namespace plumb
