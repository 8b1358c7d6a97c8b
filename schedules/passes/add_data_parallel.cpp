#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "schedules/dependencies/like_copies.h"
#include "schedules/error.h"
#include "schedules/passes/insertions.h"
#include "schedules/passes/passes.h"
#include "schedules/weight_holders.h"

namespace plumb { inline namespace schedules {

namespace {

/// Returns [stage] its number of buckets, which is 1 where none are given.
std::vector<int> buckets_by_stage(const Schedule& schedule, int zero, const std::vector<int>& buckets) {
  const std::size_t stages = schedule.stages.size();
  if (buckets.empty()) return std::vector<int>(stages, 1);
  if (zero >= 2) {
    throw ScheduleError(
        fmt::format("ZeRO {} reduces every gradient behind its action: give no buckets, or ZeRO 0 or 1", zero));
  }
  if (buckets.size() != 1 && buckets.size() != stages) {
    throw ScheduleError(fmt::format("there are buckets for {} stages of {}: give one number for all, or one each",
                                    buckets.size(), stages));
  }
  for (const int count : buckets) {
    if (count < 1 || count > std::numeric_limits<std::int16_t>::max())
      throw ScheduleError(fmt::format("a stage cannot have {} buckets: give 1 to 32767", count));
  }
  return buckets.size() == 1 ? std::vector<int>(stages, buckets.front()) : buckets;
}

/// Removes the REDUCE_GRADs of copies: copies that share gradients sum them as they come, and not once a step.
void take_out_copy_reductions(Schedule& schedule, const std::vector<bool>& copied) {
  for (std::vector<Action>& actions : schedule.ranks)
    std::erase_if(actions, [&](const Action& a) { return a.op == Op::kReduceGrad && copied[a.stage]; });
}

/// Throws ScheduleError if stages share weights on a rank, or have none: UNSHARDs and REDUCE_GRADs are of one stage.
void require_own_weights(const Schedule& schedule, const std::vector<int>& holders, int zero) {
  for (std::size_t stage = 0; stage < holders.size(); ++stage)
    if (holders[stage] != static_cast<int>(stage))
      throw ScheduleError(
          fmt::format("ZeRO {}: {}: the lanes of a rank share weights: take ZeRO 0 or 1", zero, schedule.name));
}

}  // namespace

Schedule add_data_parallel(Schedule schedule, int zero, const Sharding& sharding, const std::vector<int>& buckets) {
  if (zero < 0 || zero > 3) throw ScheduleError(fmt::format("there is no ZeRO stage {}: give 0, 1, 2 or 3", zero));
  const bool gathers_after_step = zero == 1 || zero == 2;
  const bool reduces_every_gradient = zero == 2;

  const std::vector<int> bucket_count = buckets_by_stage(schedule, zero, buckets);
  const std::vector<int> holders = weight_holders(schedule);
  std::vector<bool> summed_once = stages_with_copies(schedule);
  if (zero >= 2) {
    require_own_weights(schedule, holders, zero);
    take_out_copy_reductions(schedule, summed_once);
    summed_once.assign(summed_once.size(), false);
    if (const std::string why = why_copies_cannot_share(schedule, zero == 3); !why.empty())
      throw ScheduleError(fmt::format("ZeRO {}: {}: {}", zero, schedule.name, why));
  }
  if (zero == 3) return add_sharding(std::move(schedule), sharding);

  for (std::vector<Action>& actions : schedule.ranks) {
    std::vector<Insertion> insertions;
    const auto insert = [&insertions](std::size_t position, Op op, int stage, int part = 0) {
      insertions.push_back(
          {.position = position, .action = {.op = op, .part = static_cast<std::int16_t>(part), .stage = stage}});
    };
    // Seen from the end, the last weight gradient before an optimizer step is the first one met.
    std::vector<bool> step_is_next(schedule.stages.size(), false);
    std::vector<std::size_t> last_gradients;
    for (std::size_t i = actions.size(); i-- > 0;) {
      const int holder = holders[actions[i].stage];
      if (actions[i].op == Op::kOptimizerStep) step_is_next[holder] = true;
      if (gives_weight_gradient(actions[i].op) && step_is_next[holder]) {
        last_gradients.push_back(i);
        step_is_next[holder] = false;
      }
    }
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      const int holder = holders[action.stage];
      const std::size_t behind = position_behind(actions, i);
      const bool is_last = !last_gradients.empty() && last_gradients.back() == i;
      if (is_last) last_gradients.pop_back();
      if (gives_weight_gradient(action.op) && (reduces_every_gradient || is_last) && !summed_once[holder]) {
        const bool in_pair = action.overlaps_next || position_before(actions, i) != i;
        const std::size_t position = buckets.empty() || in_pair || holder != action.stage ? behind : i;
        for (int part = 0; part < bucket_count[holder]; ++part) insert(position, Op::kReduceGrad, holder, part);
      }
      if (gathers_after_step && action.op == Op::kOptimizerStep) insert(behind, Op::kUnshard, action.stage);
    }
    actions = with_insertions(actions, std::move(insertions));
  }
  return schedule;
}

}}  // namespace plumb::schedules
