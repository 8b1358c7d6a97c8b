#include "schedules/generators/slices.h"

#include <limits>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace schedules {
namespace {

Action slice_action(Op op, int stage, int microbatch, int slice) {
  return {.op = op, .part = static_cast<std::int16_t>(slice), .stage = stage, .microbatch = microbatch};
}

}  // namespace

void require_numbered_slices(std::string_view schedule, int slices) {
  constexpr int kMost = std::numeric_limits<decltype(Action::part)>::max();
  if (slices <= kMost) return;
  throw ScheduleError(fmt::format("{} cannot number {} slices: give {} or fewer", schedule, slices, kMost));
}

SlicedActions each_slice(std::string_view schedule, int stage, const ScheduleParameters& parameters) {
  const int k = parameters.slices;
  require_numbered_slices(schedule, k);
  SlicedActions sliced;
  for (int i = 0; i < parameters.microbatches; ++i) {
    for (int slice = 0; slice < k; ++slice) {
      sliced.forwards.push_back(slice_action(Op::kForward, stage, i, slice));
      sliced.backwards.push_back(slice_action(Op::kBackward, stage, i, k - 1 - slice));
    }
  }
  return sliced;
}

}}  // namespace plumb::schedules
