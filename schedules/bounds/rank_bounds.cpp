#include "schedules/bounds/rank_bounds.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "schedules/bounds/bound_terms.h"

namespace plumb { inline namespace schedules {
namespace {

std::vector<int> positions_of(const LaneTimes& lane, const RankStretch& stretch) {
  std::vector<int> positions;
  for (int k = stretch.first; k <= stretch.last; ++k) {
    if (lane.ranks[k] == lane.ranks[stretch.first]) positions.push_back(k);
  }
  return positions;
}

std::int64_t sum_of(const std::vector<std::int64_t>& times, const std::vector<int>& positions, std::int64_t each) {
  std::int64_t sum = 0;
  for (const int k : positions) sum += each * times[k];
  return sum;
}

/// Returns the longest time of forwards that the rank's memory holds at once: those that last longest for
/// their bytes come first, and a part of one counts where activations are not equally large.
std::int64_t forwards_in_memory(const OrderQuestion& question, const LaneTimes& lane, std::vector<int> positions) {
  const ActivationMemory& memory = question.memory;
  if (memory.max_bytes.empty()) return sum_of(lane.forward, positions, lane.microbatches);
  const auto bytes = [&](int k) { return memory.activation_bytes[lane.stages[k]]; };
  std::ranges::stable_sort(positions, [&](int a, int b) {
    return static_cast<double>(lane.forward[a]) * static_cast<double>(bytes(b)) >
           static_cast<double>(lane.forward[b]) * static_cast<double>(bytes(a));
  });
  const bool equally_large = std::ranges::all_of(positions, [&](int k) { return bytes(k) == bytes(positions[0]); });
  std::int64_t left = memory.max_bytes[lane.ranks[positions.front()]];
  std::int64_t time = 0;
  for (const int k : positions) {
    if (bytes(k) == 0) {
      time += lane.microbatches * lane.forward[k];
      continue;
    }
    const std::int64_t fit = std::min(lane.microbatches, left / bytes(k));
    time += fit * lane.forward[k];
    left -= fit * bytes(k);
    if (fit == lane.microbatches) continue;
    if (equally_large) break;
    const double share = static_cast<double>(left) / static_cast<double>(bytes(k));
    return time +
           std::min(lane.forward[k], 1 + static_cast<std::int64_t>(share * static_cast<double>(lane.forward[k])));
  }
  return time;
}

/// Returns the time of the weight gradients that must run before the last forward of the stretch: at that
/// moment all of its micro-batches have been taken in, and all input gradients but one may have freed their
/// part.
std::int64_t forced_weight_grads(const OrderQuestion& question, const LaneTimes& lane,
                                 const std::vector<int>& positions) {
  const ActivationMemory& memory = question.memory;
  if (memory.max_bytes.empty() || question.whole_backwards) return 0;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::int64_t kept = 0, most_kept = 0, least_early = kMost, least_time = kMost;
  for (const int k : positions) {
    const std::int64_t early = memory.released_at_input_grad_bytes[lane.stages[k]];
    const std::int64_t late = memory.activation_bytes[lane.stages[k]] - early;
    kept += lane.microbatches * late;
    most_kept = std::max(most_kept, late);
    least_early = std::min(least_early, early);
    least_time = std::min(least_time, lane.weight_grad[k]);
  }
  const std::int64_t excess = kept + least_early - memory.max_bytes[lane.ranks[positions.front()]];
  return excess <= 0 || most_kept == 0 ? 0 : (excess + most_kept - 1) / most_kept * least_time;
}

std::int64_t idling(const OrderQuestion& question, const LaneTimes& lane, const RankStretch& stretch,
                    const std::vector<int>& positions) {
  const std::int64_t until_gradient =
      lane.first_input_grad[stretch.last] + lane.slice_wait - lane.first_forward[stretch.first];
  return std::max<std::int64_t>(0, until_gradient - forwards_in_memory(question, lane, positions));
}

void add_work(BoundTerms& terms, const OrderQuestion& question, const LaneTimes& lane, const RankStretch& stretch,
              const std::vector<int>& positions) {
  const int rank = lane.ranks[stretch.first];
  terms.add(sum_of(lane.forward, positions, lane.microbatches), fmt::format("of forwards on rank {}", rank));
  terms.add(idling(question, lane, stretch, positions),
            fmt::format("of idling on rank {}, whose first gradient is not there yet when it has run all forwards that "
                        "it has or holds",
                        rank));
  terms.add(sum_of(lane.input_grad, positions, lane.microbatches),
            fmt::format("of {} on rank {}", question.whole_backwards ? "backwards" : "input gradients", rank));
}

}  // namespace

LowerBound rank_work_bound(const OrderQuestion& question, const LaneTimes& lane, const RankStretch& stretch) {
  const std::vector<int> positions = positions_of(lane, stretch);
  const int rank = lane.ranks[stretch.first];
  BoundTerms terms(fmt::format("the work of rank {}", rank));
  const BoundTail own_end{.way = 0, .to = stretch.first};
  const BoundTail& tail = question.whole_backwards ? lane.tails[stretch.first] : own_end;
  terms.add_start(lane, tail, lane.first_forward[stretch.first], rank);
  add_work(terms, question, lane, stretch, positions);
  terms.add(sum_of(lane.weight_grad, positions, lane.microbatches),
            fmt::format("of weight gradients on rank {}", rank));
  if (question.whole_backwards) terms.add_tail(lane, stretch.first);
  return std::move(terms).sum();
}

LowerBound drain_bound(const OrderQuestion& question, const LaneTimes& lane, const RankStretch& stretch) {
  const std::vector<int> positions = positions_of(lane, stretch);
  const int rank = lane.ranks[stretch.first];
  BoundTerms terms(fmt::format("the way back from rank {}", rank));
  terms.add_start(lane, lane.tails[stretch.first], lane.first_forward[stretch.first], rank);
  add_work(terms, question, lane, stretch, positions);
  terms.add(forced_weight_grads(question, lane, positions),
            fmt::format("of weight gradients on rank {} that make room for its last forward", rank));
  terms.add_tail(lane, stretch.first);
  return std::move(terms).sum();
}

}}  // namespace plumb::schedules
