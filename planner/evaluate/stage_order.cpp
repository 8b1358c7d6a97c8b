#include "planner/evaluate/stage_order.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/evaluate/pipeline_hops.h"
#include "schedules/dependencies/shards.h"
#include "schedules/dependencies/weight_messages.h"
#include "schedules/error.h"
#include "schedules/weight_holders.h"

namespace plumb { inline namespace planner {
namespace {

/// A bit for each operation that the schedule has, one pass over it.
unsigned operations_of(const Schedule& schedule) {
  unsigned used = 0;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) used |= 1U << static_cast<unsigned>(action.op);
  }
  return used;
}

int part_count(const Schedule& schedule) {
  int parts = 1;
  for (const StagePlace& stage : schedule.stages) parts = std::max(parts, stage.model_part + 1);
  return parts;
}

}  // namespace

StageOrder stage_order(const Schedule& schedule) {
  const std::vector<int> weights = weight_holders(schedule);
  if (has_shards(schedule) || std::ranges::count(weights, -1) > 0) {
    throw ScheduleError(
        fmt::format("{} divides layers into model parts, which have no price: simulate it with --costs, or take 1f1b",
                    schedule.name));
  }
  if (weights_travel(schedule)) {
    throw ScheduleError(
        fmt::format("{} sends weights from rank to rank, which have no price: simulate it with --costs, or take 1f1b",
                    schedule.name));
  }
  return {.operations = operations_of(schedule),
          .parts = part_count(schedule),
          .copies = has_copies(schedule),
          .hops = pipeline_hops(schedule)};
}

}}  // namespace plumb::planner
