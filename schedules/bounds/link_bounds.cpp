#include "schedules/bounds/link_bounds.h"

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "schedules/bounds/bound_terms.h"

namespace plumb { inline namespace schedules {
namespace {

/// A message that leaves one position for a neighbouring one, `to`.
struct Crossing {
  std::int64_t leaves = 0;   ///< no message of its kind leaves earlier
  std::int64_t busy = 0;     ///< how long it has the link to itself
  std::int64_t latency = 0;  ///< behind that, until it arrives
  std::int64_t rest = 0;     ///< from its arrival to the end of the input gradient of `to`
  int to = 0;
};

Crossing crossing_at(const LaneTimes& lane, int position, HopKind kind) {
  const int k = position;
  const bool is_activation = kind == HopKind::kActivation;
  const std::int64_t busy = (is_activation ? lane.hop_busy.activation : lane.hop_busy.gradient)[k];
  Crossing crossing{.busy = busy, .latency = (is_activation ? lane.hop.activation : lane.hop.gradient)[k] - busy};
  if (is_activation) {
    crossing.to = k + 1;
    crossing.leaves = lane.first_forward[k] + lane.forward[k];
    crossing.rest = lane.first_input_grad[k + 1] + lane.input_grad[k + 1] - lane.first_forward[k + 1];
  } else {
    crossing.to = k;
    crossing.leaves = lane.first_input_grad[k + 1] + lane.slice_wait + lane.input_grad[k + 1];
    crossing.rest = lane.input_grad[k];
  }
  return crossing;
}

}  // namespace

LowerBound link_bound(const LaneTimes& lane, int from_rank, int to_rank, HopKind kind) {
  std::int64_t leaves = std::numeric_limits<std::int64_t>::max();
  std::int64_t busy = 0;
  std::int64_t least_end = std::numeric_limits<std::int64_t>::max();
  Crossing last;
  for (int k = 0; k + 1 < static_cast<int>(lane.stages.size()); ++k) {
    const bool is_activation = kind == HopKind::kActivation;
    if (lane.ranks[is_activation ? k : k + 1] != from_rank || lane.ranks[is_activation ? k + 1 : k] != to_rank)
      continue;
    const Crossing crossing = crossing_at(lane, k, kind);
    if (crossing.busy == 0) continue;
    leaves = std::min(leaves, crossing.leaves);
    busy += lane.microbatches * crossing.busy;
    const BoundTail& tail = lane.tails[crossing.to];
    const std::int64_t end = crossing.latency + crossing.rest + tail.way - lane.uncounted[tail.to];
    if (end < least_end) least_end = end, last = crossing;
  }
  const BoundTail& tail = lane.tails[last.to];
  if (busy == 0 || leaves < lane.uncounted[tail.to]) return {};
  const char* what = kind == HopKind::kActivation ? "activations" : "gradients";
  BoundTerms terms(fmt::format("the link from rank {} to rank {}", from_rank, to_rank));
  const std::int64_t uncounted = lane.uncounted[tail.to];
  const std::string since =
      uncounted == 0 ? "" : fmt::format("from the first forward of rank {} ", lane.ranks[tail.to]);
  terms.add(leaves - uncounted, fmt::format("{}until the first message leaves rank {}", since, from_rank));
  terms.add(busy, fmt::format("in which {} pass from rank {} to rank {} one by one", what, from_rank, to_rank));
  terms.add(last.latency + last.rest, fmt::format("for the last of them to rank {} and through its gradient", to_rank));
  terms.add_tail(lane, last.to);
  return std::move(terms).sum();
}

}}  // namespace plumb::schedules
