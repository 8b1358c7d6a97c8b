#include "schedules/dependencies/like_copies.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace plumb { inline namespace schedules {
namespace {

using Deed = std::tuple<Op, int, std::int16_t>;  // operation, model part, and slice or bucket

/// Returns the actions that a rank does together with others that hold the same model parts, in its order.
std::vector<Deed> deeds_of(const Schedule& schedule, int rank, bool weights) {
  const auto counts = [weights](Op op) {
    if (op == Op::kOptimizerStep || (op == Op::kRecompute && !weights)) return false;
    return is_compute(op) || op == Op::kReduceGrad || op == Op::kReshard;
  };
  std::vector<Deed> deeds;
  for (const Action& action : schedule.ranks[static_cast<std::size_t>(rank)])
    if (counts(action.op))
      deeds.emplace_back(action.op, schedule.stages[static_cast<std::size_t>(action.stage)].model_part, action.part);
  return deeds;
}

}  // namespace

std::string why_copies_cannot_share(const Schedule& schedule, bool weights) {
  const std::vector<StagePlace>& stages = schedule.stages;
  const std::vector<bool> copied = stages_with_copies(schedule);
  std::vector<std::vector<Deed>> deeds;
  for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()); ++rank)
    deeds.push_back(deeds_of(schedule, rank, weights));
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const auto first = std::ranges::find(stages, stages[stage].model_part, &StagePlace::model_part);
    if (!copied[stage] || first->lane == stages[stage].lane) continue;  // alone, or a shard, which has its own state
    if (deeds[static_cast<std::size_t>(first->rank)] == deeds[static_cast<std::size_t>(stages[stage].rank)]) continue;
    return fmt::format(
        "ranks {} and {} hold copies of model part {}, which share its state, and do not do the same in the same "
        "order: {}take ZeRO 0 or 1",
        first->rank, stages[stage].rank, first->model_part,
        schedule.microbatches % 2 == 0 ? "" : "give an even number of micro-batches, or ");
  }
  return {};
}

}}  // namespace plumb::schedules
