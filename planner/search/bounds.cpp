#include "planner/search/bounds.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "planner/evaluate/pipeline_hops.h"
#include "planner/spec/cluster_sites.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

bool has(const Schedule& order, Op op) {
  return std::ranges::any_of(order.ranks, [op](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [op](const Action& action) { return action.op == op; });
  });
}

/// The times of a stage's operations.
struct StageTimes {
  SimTime forward{0};
  SimTime backward{0};
  SimTime last{0};       ///< the reduction and the optimizer step
  SimTime computing{0};  ///< of forward and backward, without collectives
};

SimTime computing_of(const CostTable& kinds, const Action& action) {
  SimTime sum{0};
  for (const Segment& segment : segments_of(kinds, action))
    if (segment.kind == Segment::Kind::kCompute) sum += to_sim_time(segment.seconds);
  return sum;
}

std::vector<StageTimes> times_of(const CostTable& kinds, bool backwards) {
  std::vector<StageTimes> times;
  times.reserve(kinds.stages.size());
  for (std::size_t kind = 0; kind < kinds.stages.size(); ++kind) {
    const auto action = [&](Op op) { return Action{.op = op, .stage = static_cast<std::int32_t>(kind)}; };
    const auto lasts = [&](Op op) { return duration_of(kinds, action(op)); };
    const bool inside = !kinds.stages[kind].bucket_offsets.empty();
    if (!backwards) {  // nothing is reduced, and no step is taken
      times.push_back({.forward = lasts(Op::kForward)});
      continue;
    }
    times.push_back(
        {.forward = lasts(Op::kForward),
         .backward = lasts(Op::kBackward),
         .last = (inside ? SimTime{0} : lasts(Op::kReduceGrad)) + lasts(Op::kOptimizerStep),
         .computing = computing_of(kinds, action(Op::kForward)) + computing_of(kinds, action(Op::kBackward))});
  }
  return times;
}

/// The time from when a message leaves until it is there.
SimTime message_time(const StageLink& link, std::int64_t bytes) {
  return to_sim_time(Seconds{static_cast<double>(bytes) / link.cost.bytes_per_second}) + to_sim_time(link.cost.latency);
}

/// The times of the messages between a stage and its predecessor.
struct HopTimes {
  SimTime forth{0};
  SimTime back{0};
};

HopTimes hop_times(int stage, const StageTable& stages, const BoundOrder& order) {
  const int hop = order.hop[stage];
  if (hop < 0 || stages.links.empty()) return {};
  const auto kind = [&](int of) -> const StageCosts& { return stages.kinds.stages[stages.kind_of_stage[of]]; };
  return {.forth = message_time(stages.links[hop], kind(order.predecessor[stage]).activation_message_bytes),
          .back = message_time(stages.links[hop + 1], kind(stage).gradient_message_bytes)};
}

/// Each stage a kind of its own.
std::vector<int> own_kinds(const CostTable& costs) {
  std::vector<int> kinds(costs.stages.size());
  std::iota(kinds.begin(), kinds.end(), 0);
  return kinds;
}

}  // namespace

BoundOrder bound_order(const Schedule& schedule) {
  const std::size_t stages = schedule.stages.size();
  const bool split = has(schedule, Op::kInputGrad);
  BoundOrder order{.backwards = split || has(schedule, Op::kBackward),
                   .split = split,
                   .pairs = std::ranges::any_of(schedule.ranks,
                                                [](const std::vector<Action>& actions) {
                                                  return std::ranges::any_of(actions, &Action::overlaps_next);
                                                }),
                   .predecessor = stage_neighbors(schedule).predecessor,
                   .hop = hops_to(schedule),
                   .by_part = std::vector<int>(stages),
                   .root = std::vector<int>(stages),
                   .first_stage = std::vector<int>(schedule.ranks.size(), -1)};
  const auto part = [&](int stage) { return schedule.stages[stage].model_part; };
  std::iota(order.by_part.begin(), order.by_part.end(), 0);
  std::ranges::stable_sort(order.by_part, {}, part);
  for (const int stage : order.by_part) {
    const int before = order.predecessor[stage];
    order.root[stage] = before < 0 ? stage : order.root[before];
  }
  for (int stage = 0; stage < static_cast<int>(stages); ++stage) {
    const StagePlace& place = schedule.stages[stage];
    order.lanes = order.lanes || place.lane > 0;
    order.rank.push_back(place.rank);
    int& first = order.first_stage[place.rank];
    if (first < 0 || place.model_part < part(first)) first = stage;
  }
  return order;
}

SimTime step_time_lower_bound(const StageTable& stages, const BoundOrder& order, std::int64_t microbatches,
                              std::span<const SimTime> waits) {
  const std::vector<StageTimes> times = times_of(stages.kinds, order.backwards);
  const auto at = [&](int stage) -> const StageTimes& { return times[stages.kind_of_stage[stage]]; };

  std::vector<SimTime> work(order.first_stage.size(), SimTime{0});
  std::vector<SimTime> last(order.first_stage.size(), SimTime::max());  // the least of the rank's stages
  std::vector<SimTime> before(order.rank.size(), SimTime{0});           // [stage] the parts before it, there and back
  for (const int stage : order.by_part) {
    const int rank = order.rank[stage];
    // With several lanes, a micro-batch runs in one of them alone.
    if (!order.lanes)
      work[rank] += microbatches * (order.pairs ? at(stage).computing : at(stage).forward + at(stage).backward);
    last[rank] = std::min(last[rank], at(stage).last);
    const int predecessor = order.predecessor[stage];
    if (predecessor < 0) continue;
    // A rank's last weight gradient may run beside the input gradients of those parts where backwards are split.
    const HopTimes messages = hop_times(stage, stages, order);
    before[stage] = before[predecessor] + at(predecessor).forward + messages.forth;
    if (order.backwards && !order.split) before[stage] += at(predecessor).backward + messages.back;
  }
  SimTime bound{0};
  for (std::size_t rank = 0; rank < order.first_stage.size(); ++rank) {
    const int first = order.first_stage[rank];
    if (first < 0) continue;
    // The step ends at the lane's first stage, or with any stage of the rank itself.
    const bool itself = order.split || order.root[first] == first;
    const SimTime tail = itself ? last[rank] : at(order.root[first]).last;
    const SimTime waiting = waits.empty() ? SimTime{0} : waits[rank];
    bound = std::max(bound, work[rank] + waiting + before[first] + tail);
  }
  return bound;
}

SimTime step_time_lower_bound(const CostTable& costs, const Schedule& order, std::int64_t microbatches) {
  const std::vector<int> kinds = own_kinds(costs);
  std::vector<StageLink> links;
  for (const auto& [source, destination] : pipeline_hops(order))
    links.push_back({source, destination, link_between(costs, source, destination)});
  return step_time_lower_bound({costs, kinds, links}, bound_order(order), microbatches);
}

SimTime busy_lower_bound(const StageTable& stages, const BoundOrder& order, std::int64_t microbatches) {
  if (order.lanes) return SimTime{0};
  const std::vector<StageTimes> times = times_of(stages.kinds, order.backwards);
  SimTime all{0};
  for (const int kind : stages.kind_of_stage) {
    const StageTimes& of = times[kind];
    all += microbatches * (order.pairs ? of.computing : of.forward + of.backward);
  }
  return all / static_cast<std::int64_t>(order.first_stage.size());
}

std::vector<std::int64_t> memory_in_issue_order(const CostTable& costs, const Schedule& order) {
  const std::vector<int> kinds = own_kinds(costs);
  return memory_in_issue_order(costs, held_order(order, kinds));
}

std::optional<MemoryShortfall> memory_shortfall(const std::vector<std::int64_t>& peak_bytes, const DeviceSpec& device,
                                                double headroom) {
  const auto largest = std::ranges::max_element(peak_bytes);
  const auto available =
      static_cast<std::int64_t>(static_cast<double>(device.memory_bytes - device.reserved_bytes) / (1 + headroom));
  if (largest == peak_bytes.end() || *largest <= available) return std::nullopt;
  return MemoryShortfall{.rank = static_cast<int>(largest - peak_bytes.begin()),
                         .missing_bytes = *largest - available,
                         .available_bytes = available};
}

std::optional<MemoryShortfall> memory_shortfall(const std::vector<std::int64_t>& peak_bytes, const ClusterSpec& cluster,
                                                const Layout& layout, double headroom) {
  if (site_count(cluster) == 1) return memory_shortfall(peak_bytes, cluster.device, headroom);
  std::optional<MemoryShortfall> worst;
  for (std::size_t rank = 0; rank < peak_bytes.size(); ++rank) {
    const DeviceSpec& device = device_of_rank(cluster, layout, static_cast<int>(rank));
    auto lacks = memory_shortfall({peak_bytes[rank]}, device, headroom);
    if (!lacks || (worst && worst->missing_bytes >= lacks->missing_bytes)) continue;
    lacks->rank = static_cast<int>(rank);
    worst = lacks;
  }
  return worst;
}

std::string to_text(const MemoryShortfall& shortfall) {
  return fmt::format("rank {} lacks {:.2f} GiB besides the {:.2f} GiB that a device has for tensors", shortfall.rank,
                     static_cast<double>(shortfall.missing_bytes) / kGibibyte,
                     static_cast<double>(shortfall.available_bytes) / kGibibyte);
}

}}  // namespace plumb::planner
