#include "executor/parameters/device/stage_rebuild.h"

namespace plumb { inline namespace executor {
namespace {

std::ptrdiff_t count_of(const RunSpec& spec, std::size_t stage, Op op) {
  std::ptrdiff_t count = 0;
  for (const std::vector<Action>& actions : spec.schedule.ranks)
    for (const Action& action : actions) count += static_cast<std::size_t>(action.stage) == stage && action.op == op;
  return count;
}

/// True if copies gather each layer's weights for selective recomputation, which then runs before the backward, as on
/// the cpu backend.
bool gathers_for_rebuild(const RunSpec& spec) {
  return spec.rebuild == Recompute::kSelective && spec.layerwise && spec.zero == 3;
}

}  // namespace

StageRebuild stage_rebuild(const RunSpec& spec, std::size_t stage) {
  const bool lists = count_of(spec, stage, Op::kRecompute) > 0;
  if (spec.rebuild_which == RebuildWhich::kListed && !lists) return {};
  const bool splits = count_of(spec, stage, Op::kInputGrad) > 0;
  const bool at_once = lists || (splits && spec.rebuild != Recompute::kFull) || gathers_for_rebuild(spec);
  return {.what = spec.rebuild, .layers = spec.rebuild_layers, .at_once = at_once, .splits = splits};
}

std::vector<bool> kept_microbatches(const RunSpec& spec, std::size_t stage) {
  if (spec.rebuild == Recompute::kNone || spec.rebuild_which == RebuildWhich::kAll) return {};
  const std::ptrdiff_t listed = count_of(spec, stage, Op::kRecompute);
  if (listed == 0 || listed == count_of(spec, stage, Op::kForward)) return {};
  std::vector<bool> kept(static_cast<std::size_t>(spec.schedule.microbatches), true);
  for (const std::vector<Action>& actions : spec.schedule.ranks)
    for (const Action& action : actions)
      if (static_cast<std::size_t>(action.stage) == stage && action.op == Op::kRecompute)
        kept[static_cast<std::size_t>(action.microbatch)] = false;
  return kept;
}

}}  // namespace plumb::executor
