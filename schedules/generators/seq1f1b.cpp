#include <limits>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"

namespace plumb {
namespace {

Action slice_action(Op op, int stage, int microbatch, int slice) {
  return {.op = op, .part = static_cast<std::int16_t>(slice), .stage = stage, .microbatch = microbatch};
}

}  // namespace

Schedule seq1f1b_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int k = parameters.slices;
  constexpr int kMost = std::numeric_limits<decltype(Action::part)>::max();
  if (k > kMost) throw ScheduleError(fmt::format("seq1f1b cannot number {} slices: give {} or fewer", k, kMost));
  Schedule schedule{.name = "seq1f1b", .microbatches = parameters.microbatches, .stages = loop_placement(p, p)};
  for (int r = 0; r < p; ++r) {
    std::vector<Action> forwards;
    std::vector<Action> backwards;
    for (int i = 0; i < parameters.microbatches; ++i) {
      for (int slice = 0; slice < k; ++slice) {
        forwards.push_back(slice_action(Op::kForward, r, i, slice));
        backwards.push_back(slice_action(Op::kBackward, r, i, k - 1 - slice));
      }
    }
    // The last rank must have all slices of a micro-batch before it goes back with the last one.
    schedule.ranks.push_back(one_forward_one_backward(forwards, backwards, (p - 1 - r) + (k - 1)));
  }
  return schedule;
}

}  // namespace plumb
