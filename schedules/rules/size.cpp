#include <algorithm>

#include <fmt/format.h>

#include "schedules/rules/rules.h"

namespace plumb { inline namespace schedules {
namespace {

/// Tables below this size cost nothing, whatever the schedule is.
constexpr double kSmall = 1e6;

/// Slots of a table for each action listed; schedules with lanes, or with faults that are worth naming, stay far below.
constexpr double kMostSlotsAnAction = 64;

}  // namespace

std::vector<Violation> size_violations(const Schedule& schedule) {
  int parts = 1;
  for_each_action(schedule, [&parts](int, std::int64_t, const Action& a) {
    if (is_compute(a.op)) parts = std::max(parts, a.part + 1);
  });
  const double slots = static_cast<double>(schedule.stages.size()) * schedule.microbatches * parts;
  const std::int64_t actions = action_count(schedule);
  if (slots <= std::max(kSmall, kMostSlotsAnAction * static_cast<double>(actions))) return {};
  return {
      {.rule = Rule::kMissing,
       .message = fmt::format("{} stages, {} micro-batches and {} slices ask for {:.3g} forwards, but there are only "
                              "{} actions; mend the largest numbers, or add what is missing",
                              schedule.stages.size(), schedule.microbatches, parts, slots, actions)}};
}

}}  // namespace plumb::schedules
