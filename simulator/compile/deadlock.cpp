#include "simulator/compile/deadlock.h"

#include <fmt/format.h>

#include "schedules/dependencies/action_graph.h"

namespace plumb { inline namespace simulator {

ScheduleError deadlock_error(const Schedule& schedule, Sends sends) {
  const std::string cycle = describe_cycle(schedule, find_cycle(action_graph(schedule, sends)));
  return ScheduleError(fmt::format("the schedule deadlocks: {}; reorder one of these lists", cycle));
}

}}  // namespace plumb::simulator
