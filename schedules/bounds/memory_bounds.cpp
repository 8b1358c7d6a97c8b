#include "schedules/bounds/memory_bounds.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/bounds/bound_terms.h"
#include "schedules/time.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns the shortest time from the start of a forward to the end of its input gradient.
std::int64_t round_trip(const LaneTimes& lane, int position) {
  return lane.first_input_grad[position] + lane.input_grad[position] - lane.first_forward[position];
}

std::int64_t times(std::int64_t count, std::int64_t time) {
  if (static_cast<double>(count) * static_cast<double>(time) > 2 * static_cast<double>(kLatestMoment.count())) {
    refuse_late_moment("the schedule");
  }
  return count * time;
}

/// Returns what a micro-batch holds on the rank of `entering` once its forward runs there.
std::int64_t bytes_on_the_way(const ActivationMemory& memory, const LaneTimes& lane, int entering) {
  std::int64_t bytes = 0;
  for (int k = 0; k <= entering; ++k) {
    if (lane.ranks[k] == lane.ranks[entering]) bytes += memory.activation_bytes[lane.stages[k]];
  }
  return bytes;
}

}  // namespace

LowerBound memory_cycle_bound(const OrderQuestion& question, const LaneTimes& lane, int held, int entering) {
  const ActivationMemory& memory = question.memory;
  const int rank = lane.ranks[entering];
  std::int64_t most = lane.microbatches;
  std::int64_t cycle = lane.first_input_grad[held] + lane.input_grad[held] - lane.first_forward[entering];
  const std::int64_t bytes = memory.max_bytes.empty() ? 0 : memory.activation_bytes[lane.stages[held]];
  if (bytes > 0) {
    most = std::min(most, 1 + (memory.max_bytes[rank] - bytes_on_the_way(memory, lane, entering)) / bytes);
    if (memory.released_at_input_grad_bytes[lane.stages[held]] == 0) cycle += lane.weight_grad[held];
  }
  if (most < 1) return {};  // no order fits, and the search says so
  BoundTerms terms(
      fmt::format("the memory of rank {} for {} micro-batches of stage {}", rank, most, lane.stages[held]));
  terms.add_start(lane, lane.tails[entering], lane.first_forward[entering], rank);
  const std::int64_t cycles = (lane.microbatches - 1) / most;
  terms.add(times(cycles, cycle),
            fmt::format("for {} cycles of {} micro-batches from forward to gradient on rank {}", cycles, most, rank));
  terms.add((lane.microbatches - 1) % most * lane.forward[entering],
            fmt::format("of forwards on rank {} within a cycle", rank));
  terms.add(round_trip(lane, entering), fmt::format("for the last micro-batch from rank {} to the end and back", rank));
  terms.add_tail(lane, entering);
  return std::move(terms).sum();
}

LowerBound memory_time_bound(const OrderQuestion& question, const LaneTimes& lane, int rank) {
  const ActivationMemory& memory = question.memory;
  const auto first = static_cast<int>(std::ranges::find(lane.ranks, rank) - lane.ranks.begin());
  const bool has_stage = first < static_cast<int>(lane.ranks.size());
  if (!has_stage || memory.max_bytes.empty() || memory.max_bytes[rank] == 0) return {};
  double byte_times = 0;
  for (int k = 0; k < static_cast<int>(lane.stages.size()); ++k) {
    if (lane.ranks[k] != rank) continue;
    const auto all = static_cast<double>(memory.activation_bytes[lane.stages[k]]);
    const auto late = all - static_cast<double>(memory.released_at_input_grad_bytes[lane.stages[k]]);
    byte_times += static_cast<double>(lane.microbatches) *
                  (all * static_cast<double>(round_trip(lane, k)) + late * static_cast<double>(lane.weight_grad[k]));
  }
  constexpr double kRounding = 1e-12;  // more than the sum above can be off: the bound stays below the truth
  const double least = byte_times / static_cast<double>(memory.max_bytes[rank]) * (1 - kRounding);
  if (least > 2 * static_cast<double>(kLatestMoment.count())) refuse_late_moment("the schedule");
  const BoundTail own_end{.way = 0, .to = first};
  BoundTerms terms(fmt::format("the memory of rank {}", rank));
  terms.add_start(lane, question.whole_backwards ? lane.tails[first] : own_end, lane.first_forward[first], rank);
  terms.add(
      static_cast<std::int64_t>(std::ceil(least)),
      fmt::format("in which the activations of rank {} share its memory, each from its forward to its gradient", rank));
  if (question.whole_backwards) terms.add_tail(lane, first);
  return std::move(terms).sum();
}

}}  // namespace plumb::schedules
