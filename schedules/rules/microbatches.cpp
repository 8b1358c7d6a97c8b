#include "schedules/rules/rules.h"

#include <fmt/format.h>

#include "schedules/weight_holders.h"

namespace plumb { inline namespace schedules {
namespace {

/// Says which gradients the passes of a stage have to make.
struct Wanted {
  bool gradients = false;         ///< it trains
  bool weight_gradients = false;  ///< and the stage has weights
};

void check_one(const RuleContext& c, int s, int microbatch, int part, Wanted wanted, Findings& found) {
  const auto has = [&](Op op) { return c.table.find(op, s, microbatch, part) != ActionTable::kNone; };
  const auto missing = [&](Op op) {
    const Action action{.op = op, .part = static_cast<std::int16_t>(part), .stage = s, .microbatch = microbatch};
    found.report(c.schedule.stages[s].rank, -1, Rule::kMissing, fmt::format("{} is missing; add it", to_text(action)));
  };
  if (!has(Op::kForward)) missing(Op::kForward);
  if (!wanted.gradients) return;
  if (has(Op::kBackward) && (has(Op::kInputGrad) || has(Op::kWeightGrad))) {
    const auto [rank, position] = place_of(c.ids, c.table.find(Op::kBackward, s, microbatch, part));
    found.report(rank, position, Rule::kMixedBackward,
                 fmt::format("stage {} has both a whole backward B and a split one (I, W) for micro-batch {}; keep one",
                             s, microbatch));
  } else if (!has(Op::kBackward)) {
    if (!has(Op::kInputGrad) && !has(Op::kWeightGrad)) missing(Op::kBackward);
    if (has(Op::kInputGrad) && !has(Op::kWeightGrad) && wanted.weight_gradients) missing(Op::kWeightGrad);
    if (!has(Op::kInputGrad) && has(Op::kWeightGrad)) missing(Op::kInputGrad);
  }
}

void check_doubled(const RuleContext& c, Findings& found) {
  std::int32_t id = 0;
  for_each_action(c.schedule, [&](int r, std::int64_t i, const Action& a) {
    const std::int32_t here = id++;
    if (!has_microbatch(a.op)) return;
    const std::int32_t first = c.table.find(a.op, a.stage, a.microbatch, a.part);
    if (first != here) {
      const auto [rank, position] = place_of(c.ids, first);
      found.report(r, i, Rule::kDoubled,
                   fmt::format("{} stands on rank {} at position {} already; remove one", to_text(a), rank, position));
    }
  });
}

/// Checks that an action stands behind the actions of its own rank that make its inputs.
void check_order(const RuleContext& c, Findings& found) {
  std::int32_t id = 0;
  for_each_action(c.schedule, [&](int r, std::int64_t i, const Action& a) {
    const std::int32_t here = id++;
    const auto after = [&](Op op, std::string_view what) {
      const std::int32_t other =
          has_microbatch(a.op) ? c.table.find(op, a.stage, a.microbatch, a.part) : ActionTable::kNone;
      if (other == ActionTable::kNone || other < here) return;
      const auto [rank, position] = place_of(c.ids, other);
      found.report(r, i, Rule::kOrder,
                   fmt::format("{} stands ahead of its {} {} (position {}); list that first", to_text(a), what,
                               to_text(c.schedule.ranks[rank][position]), position));
    };
    switch (a.op) {
      case Op::kBackward:
      case Op::kInputGrad:
        after(Op::kForward, "forward");
        after(Op::kRecompute, "recompute");
        break;
      case Op::kWeightGrad:
        after(Op::kInputGrad, "input gradient");
        break;
      case Op::kRecompute:
        after(Op::kForward, "forward");
        break;
      default:
        break;
    }
  });
}

}  // namespace

std::vector<Violation> microbatch_violations(const RuleContext& c) {
  Findings found;
  const int stages = static_cast<int>(c.schedule.stages.size());
  check_doubled(c, found);
  const bool trains = c.lists(Op::kBackward) || c.lists(Op::kInputGrad) || c.lists(Op::kWeightGrad);
  const std::vector<int> holders = weight_holders(c.schedule);
  std::vector<int> lane_of(static_cast<std::size_t>(c.schedule.microbatches), -1);
  for_each_action(c.schedule, [&](int r, std::int64_t i, const Action& a) {
    if (a.op != Op::kForward) return;
    int& lane = lane_of[a.microbatch];
    const int here = c.schedule.stages[a.stage].lane;
    if (lane == -1) lane = here;
    if (lane != here) {
      found.report(r, i, Rule::kLane,
                   fmt::format("{} runs micro-batch {} on lane {}, but it runs on lane {} elsewhere; keep it on one",
                               to_text(a), a.microbatch, here, lane));
    }
  });
  for (int s = 0; s < stages; ++s) {
    const StagePlace& place = c.schedule.stages[s];
    for (int i = 0; i < c.schedule.microbatches; ++i) {
      if (lane_of[i] != place.lane && lane_of[i] != -1) continue;
      for (int part = 0; part < c.table.parts(); ++part)
        check_one(c, s, i, part, {.gradients = trains, .weight_gradients = holders[s] >= 0}, found);
    }
  }
  check_order(c, found);
  return found.take();
}

}}  // namespace plumb::schedules
