// The building blocks of controllable memory (Qi et al. 2024): a micro-batch passes the V at fixed offsets, the next
// one follows `kPeriod` slots later. Repeating the block gives the order; the list scheduler squeezes its gaps out and
// fills what gaps remain with weight gradients.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/error.h"
#include "schedules/generators/fitted.h"
#include "schedules/generators/generators.h"
#include "schedules/synthesis/list_scheduler.h"

namespace plumb {
namespace {

constexpr int kPeriod = 6;  // F, I and W of two chunks, a slot each

/// Slots between neighbouring ranks on each of the four passes, and before two of them.
struct BuildingBlock {
  int forward_down = 1;
  int forward_up = 1;
  int backward_down = 1;
  int backward_up = 1;
  int before_backward_down = 0;
  int before_backward_up = 0;
};

/// The stage on rank r of the V's way down (chunk 0) and up (chunk 1).
int stage_down(int r) {
  return r;
}
int stage_up(int p, int r) {
  return 2 * p - 1 - r;
}

ListRules repeated(const BuildingBlock& block, int p, int chunk_limit) {
  const auto stages = static_cast<std::size_t>(2 * p);
  ListRules rules{.forward_urgency = std::vector<int>(stages),
                  .backward_urgency = std::vector<int>(stages),
                  .period = kPeriod,
                  .stage_limit = std::vector<int>(stages, chunk_limit),
                  .rank_limit = chunk_limit};
  const int turn = block.forward_down * (p - 1) + 1;
  const int top = turn + block.forward_up * (p - 1) + 1;
  const int backward_top = top + block.before_backward_down;
  const int backward_turn = backward_top + block.backward_down * (p - 1) + 1 + block.before_backward_up;
  for (int r = 0; r < p; ++r) {
    rules.forward_urgency[stage_down(r)] = block.forward_down * r;
    rules.forward_urgency[stage_up(p, r)] = turn + block.forward_up * (p - 1 - r);
    rules.backward_urgency[stage_up(p, r)] = backward_top + block.backward_down * r;
    rules.backward_urgency[stage_down(r)] = backward_turn + block.backward_up * (p - 1 - r);
  }
  return rules;
}

/// The slots of one period on a rank, taken or free.
class PeriodSlots {
 public:
  /// Takes `length` slots from the first possible start at or behind `earliest`; returns that start. Slot t stands for
  /// t + kPeriod, t + 2 kPeriod, ... as well. The four actions of a rank always fit: its two forwards stand an odd
  /// number of slots apart, so that what they leave free falls into pairs.
  int take(int earliest, int length) {
    int start = earliest;
    while (!is_free(start, length)) ++start;
    for (int t = start; t < start + length; ++t) taken_[t % kPeriod] = true;
    return start;
  }

 private:
  bool is_free(int start, int length) const {
    for (int t = start; t < start + length; ++t) {
      if (taken_[t % kPeriod]) return false;
    }
    return true;
  }
  std::array<bool, kPeriod> taken_{};
};

Schedule frame(std::string_view name, const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  return {.name = std::string(name), .microbatches = parameters.microbatches, .stages = snake_placement(p, 2 * p)};
}

/// The order that the rules make at F = I = W; for other costs the best that is found from it and from what the rules
/// make at those.
Schedule scheduled(const Schedule& empty, const ScheduleParameters& parameters, ListRules rules) {
  const int p = parameters.ranks;
  Schedule at_equal_costs = list_schedule(empty, p, {.weight_grad = 1}, rules);
  if (has_equal_costs(parameters, 2 * p)) return at_equal_costs;
  ListCosts costs = mean_costs(parameters, 2 * p);
  costs.weight_grad = std::max<std::int64_t>(costs.weight_grad, 1);  // 0 would ask for whole backwards
  std::vector<Schedule> candidates = {std::move(at_equal_costs)};
  for (const double ratio : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    rules.least_gap_ratio = ratio;
    const std::int64_t forward = std::max<std::int64_t>(costs.forward, 1);
    const ListCosts equal{.forward = forward, .input_grad = forward, .weight_grad = forward, .hop = costs.hop};
    for (const ListCosts& taken : {costs, equal}) {
      try {
        candidates.push_back(list_schedule(empty, p, taken, rules));
      } catch (const ScheduleError&) {
        // Limits and a fixed order of candidates can deadlock at some costs: the others stand.
      }
    }
  }
  return fitted(candidates, parameters, rules.rank_limit);
}

}  // namespace

Schedule v_half_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int limit = p + 2;
  // The extra slots keep the four actions of a rank in different slots of the period.
  ListRules rules = repeated(
      {.forward_down = 2, .backward_down = 2, .before_backward_down = p % 2 == 0 ? 3 : 0, .before_backward_up = 1}, p,
      limit);
  // Chunk 0 runs ahead while the pipeline fills, but leaves room for the chunk 1 that the pattern has in flight.
  for (int r = 0; r < p; ++r) {
    rules.stage_limit[stage_up(p, r)] = 2 + r / 2;
    rules.stage_limit[stage_down(r)] = limit - 1 - r / 2;
  }
  return scheduled(frame("v-half", parameters), parameters, std::move(rules));
}

Schedule v_min_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  ListRules rules = repeated({.before_backward_down = p % 3 == 0 ? 2 : 0}, p, 2 * ((p + 4) / 3));
  rules.in_order = true;
  return scheduled(frame("v-min", parameters), parameters, std::move(rules));
}

Schedule v_1f1b_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  ListRules rules = repeated({}, p, parameters.microbatches);
  rules.rank_limit = 0;
  rules.in_order = true;
  constexpr int kForward = 1;
  constexpr int kBackward = 2;
  std::vector<PeriodSlots> slots(static_cast<std::size_t>(p));
  int now = 0;
  const auto place = [&](std::vector<int>& urgency, int stage, int r, int length) {
    urgency[stage] = slots[r].take(now, length);
    now = urgency[stage] + length;
  };
  for (int r = 0; r < p; ++r) place(rules.forward_urgency, stage_down(r), r, kForward);
  for (int r = p - 1; r >= 0; --r) place(rules.forward_urgency, stage_up(p, r), r, kForward);
  for (int r = 0; r < p; ++r) place(rules.backward_urgency, stage_up(p, r), r, kBackward);
  for (int r = p - 1; r >= 0; --r) place(rules.backward_urgency, stage_down(r), r, kBackward);
  return list_schedule(frame("v-1f1b", parameters), p, {.forward = kForward, .input_grad = kBackward}, rules);
}

}  // namespace plumb
