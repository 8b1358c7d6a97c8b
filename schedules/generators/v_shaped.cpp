// Schedules on a V that repeat a building block (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024).
// Chunk 0 goes down the V, chunk 1 comes up, and the gradients take the way back.

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/generators/fitted.h"
#include "schedules/generators/generators.h"
#include "schedules/synthesis/repeated_block.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr int kPeriod = 6;  // F, I and W of two chunks, a slot each

/// Returns the stage on rank r of the V's way down (chunk 0) and up (chunk 1).
int stage_down(int r) {
  return r;
}
int stage_up(int p, int r) {
  return 2 * p - 1 - r;
}

Schedule frame(std::string_view name, const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  return {.name = std::string(name), .microbatches = parameters.microbatches, .stages = snake_placement(p, 2 * p)};
}

BuildingBlock empty_block(int p, int rank_limit) {
  const auto stages = static_cast<std::size_t>(2 * p);
  return {.forward_slot = std::vector<int>(stages),
          .backward_slot = std::vector<int>(stages),
          .period = kPeriod,
          .rank_limit = rank_limit};
}

/// Slots from rank to rank on each of the four passes, and idle slots before two of them.
struct Passes {
  int forward_down = 1;
  int forward_up = 1;
  int backward_down = 1;
  int backward_up = 1;
  int before_backward_down = 0;
  int before_backward_up = 0;
};

BuildingBlock block_of(const Passes& passes, int p, int rank_limit) {
  BuildingBlock block = empty_block(p, rank_limit);
  const int turn = passes.forward_down * (p - 1) + 1;
  const int top = turn + passes.forward_up * (p - 1) + 1;
  const int backward_top = top + passes.before_backward_down;
  const int backward_turn = backward_top + passes.backward_down * (p - 1) + 1 + passes.before_backward_up;
  for (int r = 0; r < p; ++r) {
    block.forward_slot[stage_down(r)] = passes.forward_down * r;
    block.forward_slot[stage_up(p, r)] = turn + passes.forward_up * (p - 1 - r);
    block.backward_slot[stage_up(p, r)] = backward_top + passes.backward_down * r;
    block.backward_slot[stage_down(r)] = backward_turn + passes.backward_up * (p - 1 - r);
  }
  return block;
}

/// The slots of one period on a rank, taken or free.
class PeriodSlots {
 public:
  /// Takes `length` slots from the first possible start at or behind `earliest`, and returns that start. Slot t stands
  /// for t + kPeriod, t + 2 kPeriod, ... as well. The four actions of a rank always fit: its two forwards stand an odd
  /// number of slots apart, so that the slots that they leave free fall into pairs.
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

/// Returns the repetition, whose slots are those of F = I = W. For other costs it returns the best order that is found
/// from it and from the one whose actions move throughout.
Schedule repeated(const Schedule& empty, const ScheduleParameters& parameters, BuildingBlock block) {
  const int p = parameters.ranks;
  Schedule steady = repeat_block(empty, p, block);
  if (has_equal_costs(parameters, 2 * p)) return steady;
  block.moves_steady_state = true;
  Schedule moved = repeat_block(empty, p, block);
  return fitted({std::move(steady), std::move(moved)}, parameters, block.rank_limit);
}

}  // namespace

Schedule v_half_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  // The idle slots keep the four actions of a rank in different slots of the period.
  const Passes passes{
      .forward_down = 2, .backward_down = 2, .before_backward_down = p % 2 == 0 ? 3 : 0, .before_backward_up = 1};
  return repeated(frame("v-half", parameters), parameters, block_of(passes, p, p + 2));
}

Schedule v_min_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const Passes passes{.before_backward_down = p % 3 == 0 ? 2 : 0};
  return repeated(frame("v-min", parameters), parameters, block_of(passes, p, 2 * ((p + 4) / 3)));
}

Schedule v_1f1b_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  BuildingBlock block = empty_block(p, 2 * (2 * p / 3) + 2);
  block.whole_backwards = true;
  block.moves_steady_state = true;
  std::vector<PeriodSlots> slots(static_cast<std::size_t>(p));
  int now = 0;
  const auto place = [&](std::vector<int>& starts, int stage, int r, int length) {
    starts[stage] = slots[r].take(now, length);
    now = starts[stage] + length;
  };
  for (int r = 0; r < p; ++r) place(block.forward_slot, stage_down(r), r, 1);
  for (int r = p - 1; r >= 0; --r) place(block.forward_slot, stage_up(p, r), r, 1);
  for (int r = 0; r < p; ++r) place(block.backward_slot, stage_up(p, r), r, 2);
  for (int r = p - 1; r >= 0; --r) place(block.backward_slot, stage_down(r), r, 2);
  return repeat_block(frame("v-1f1b", parameters), p, block);
}

}}  // namespace plumb::schedules
