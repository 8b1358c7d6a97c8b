#pragma once
// The inputs of an action: which other actions of its micro-batch must have run. This is rule 2 of docs/design.md, the
// only place where it is written; the list of dependencies, the check that a schedule runs to its end, and the
// simulator's compiler all walk it.

#include <array>
#include <cstdint>
#include <span>

#include "schedules/dependencies/shards.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// One input: an action of `ops`, of the same micro-batch as the action that takes it. Where several operations are
/// named, a schedule lists one of them (I or B), or all that it lists must have run (RELOAD and LOAD).
struct ActionInput {
  enum class From : std::uint8_t {
    kOwnStage,  ///< the same stage
    kNeighbor,  ///< the stage before or behind, on this rank or on another
    kShard,     ///< a stage on the other side of shards, or another shard, on this rank or on another
    kMove,      ///< the move that brings activations back, or for that move the one that took them away
  };
  From from = From::kOwnStage;
  std::array<Op, 2> op{};
  int ops = 1;  ///< how many of `op` count
  int stage = 0;
  int part = 0;
};

/// Calls `visit(input)` for each input of `action`, moves first. An input of a part that the schedule does not have, or
/// that it does not list, holds nobody up.
template <class Visit>
void for_each_input(const Action& action, const StageNeighbors& neighbors, const Shards& shards, const Visit& visit) {
  using enum ActionInput::From;
  const int stage = action.stage, part = action.part;
  const auto own = [&](Op op, int of_part) { visit(ActionInput{kOwnStage, {op}, 1, stage, of_part}); };
  const auto moved = [&](Op op) { visit(ActionInput{kMove, {op}, 1, stage, part}); };
  const auto input_gradient = [&](ActionInput::From from, int of_stage, int of_part) {
    visit(ActionInput{from, {Op::kInputGrad, Op::kBackward}, 2, of_stage, of_part});
  };
  const auto forwards_of = [&](const std::vector<std::vector<int>>& stages) {
    if (!shards.any()) return;
    for (const int other : stages[stage]) visit(ActionInput{kShard, {Op::kForward}, 1, other, part});
  };
  const auto brought_back = [&] { visit(ActionInput{kMove, {Op::kReload, Op::kLoad}, 2, stage, part}); };
  switch (action.op) {
    case Op::kForward:
      if (const int before = neighbors.predecessor[stage]; before >= 0)
        visit(ActionInput{kNeighbor, {Op::kForward}, 1, before, part});
      forwards_of(shards.before);
      if (part > 0) own(Op::kForward, part - 1);
      break;
    case Op::kBackward:
    case Op::kInputGrad:
      brought_back();
      own(Op::kForward, part);
      own(Op::kRecompute, part);
      if (const int behind = neighbors.successor[stage]; behind >= 0) input_gradient(kNeighbor, behind, part);
      input_gradient(kOwnStage, stage, part + 1);
      if (shards.any())
        for (const int other : shards.behind[stage]) input_gradient(kShard, other, part);
      // The softmax over the whole vocabulary: a gradient of a shard's weights takes the sums of all shards.
      if (action.op == Op::kBackward) forwards_of(shards.siblings);
      break;
    case Op::kWeightGrad:
      brought_back();
      own(Op::kInputGrad, part);
      forwards_of(shards.siblings);
      break;
    case Op::kRecompute:
      brought_back();
      own(Op::kForward, part);
      break;
    case Op::kOffload:
    case Op::kEvict:
      own(Op::kForward, part);
      break;
    case Op::kReload:
      moved(Op::kOffload);
      break;
    case Op::kLoad:
      moved(Op::kEvict);
      break;
    default:
      break;
  }
}

}}  // namespace plumb::schedules
