#include "planner/price/collective/nccl_channels.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <span>

#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

constexpr double kLineRateCounted = 12.0 / 12.5;  // 100 Gb/s count as 12 GB/s

// The search tries these GB/s for one channel, by generation, fastest first.
constexpr double kInsideSpeeds[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kInsideSpeedsHopper[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double kInsideSpeedsBlackwell[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr double kBetweenSpeeds[] = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12};
constexpr double kBetweenSpeedsHopper[] = {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15.0, 12, 6, 3, 2.4, 1.2, 0.24, 0.12};
constexpr double kBetweenSpeedsBlackwell[] = {96, 86,   80, 48, 45.1, 42, 40,  30,  24,   22,
                                              20, 17.5, 15, 12, 6,    3,  2.4, 1.2, 0.24, 0.12};

// NCCL counts these shares of a link's line rate: NVLink by generation, PCIe.
constexpr double kNvlinkCounted[] = {20.0 / 25, 20.0 / 25, 20.6 / 25, 40.1 / 50};
constexpr double kPcieCounted = 12.0 / 16;

constexpr int kMostChannels = 64;

std::span<const double> inside_speeds(NcclGeneration generation) {
  if (generation == NcclGeneration::kBlackwell) return kInsideSpeedsBlackwell;
  if (generation == NcclGeneration::kHopper) return kInsideSpeedsHopper;
  return kInsideSpeeds;
}

std::span<const double> between_speeds(NcclGeneration generation) {
  if (generation == NcclGeneration::kBlackwell) return kBetweenSpeedsBlackwell;
  if (generation == NcclGeneration::kHopper) return kBetweenSpeedsHopper;
  return kBetweenSpeeds;
}

/// Returns the fastest of the speeds that is at most `limit`; the slowest if none is.
double fastest_below(std::span<const double> speeds, double limit) {
  constexpr double kRounding = 1 + 1e-9;
  const auto found = std::ranges::find_if(speeds, [&](double speed) { return speed <= limit * kRounding; });
  return found == speeds.end() ? speeds.back() : *found;
}

NcclChannels even(int count, double speed) {
  return {.count = count, .inside_bytes_per_second = speed * kGiga, .between_bytes_per_second = speed * kGiga};
}

NcclChannels inside_one_node(const NcclMachine& machine) {
  constexpr double kSlowestOfFirst = 0.49;  // the search stops at half the speed of its first solution
  const double links = inside_bytes_per_second(machine) / kGiga;
  const std::span<const double> speeds = inside_speeds(machine.spec.generation);
  const double first = fastest_below(speeds, links);
  double speed = first;
  for (const double candidate : speeds) {
    if (candidate > first || candidate < kSlowestOfFirst * first) continue;
    if (std::floor(links / candidate) * candidate > std::floor(links / speed) * speed) speed = candidate;
  }
  const int count = std::clamp(static_cast<int>(links / speed), 1, kMostChannels / 2);
  const bool since_hopper = machine.spec.generation >= NcclGeneration::kHopper;
  if (speed < 25 || (since_hopper && speed < 50 && count > 4)) return even(count, std::min(speed, links));
  return even(2 * count, speed / 2);
}

int nics_of(const NcclMachine& machine, const GroupPlacement& group) {
  return std::max(1, machine.nics * group.ranks_per_node / machine.devices_per_node);
}

/// Returns one channel a NIC, or as many as carry more over NICs that are faster than a channel.
NcclChannels across_nodes(const NcclMachine& machine, const GroupPlacement& group) {
  const std::span<const double> speeds = between_speeds(machine.spec.generation);
  const int nics = std::min(nics_of(machine, group), kMostChannels);
  const double nic = between_bytes_per_second(machine, group) / kGiga / nics;
  const double links = inside_bytes_per_second(machine) / kGiga / nics;
  const double limit = group.ranks_per_node == 1 ? nic : std::min(nic, links);
  NcclChannels best;
  double most = 0;
  for (int on_nic = 1; on_nic * nics <= kMostChannels; ++on_nic) {
    const double speed = fastest_below(speeds, limit / on_nic);
    if (speed * on_nic > most) best = even(on_nic * nics, speed), most = speed * on_nic;
    if (nic / on_nic <= speeds.front()) break;
  }
  return best;
}

/// Returns the rate to which crossing the host bounds a group's channels. It assumes that the group's ranks are spread
/// evenly over the node, like replicas of tensor groups, and that the node's groups share the crossing evenly.
double crossing_share(const NcclMachine& machine, const GroupPlacement& group) {
  const int devices_on_nic = std::max(1, machine.devices_per_node / machine.nics);
  const int stride = machine.devices_per_node / std::max(1, group.ranks_per_node);
  const bool closes_over_one_nic = group.ranks_per_node == 1 || stride < devices_on_nic;
  if (machine.spec.host_crossing_bytes_per_second == 0 || closes_over_one_nic) {
    return std::numeric_limits<double>::infinity();
  }
  return machine.spec.host_crossing_bytes_per_second * group.ranks_per_node / machine.devices_per_node;
}

NcclChannels no_faster(NcclChannels channels, double bytes_per_second) {
  const double each = bytes_per_second / channels.count;
  channels.inside_bytes_per_second = std::min(channels.inside_bytes_per_second, each);
  channels.between_bytes_per_second = std::min(channels.between_bytes_per_second, each);
  return channels;
}

NcclChannels tree_of(const NcclMachine& machine, NcclChannels channels) {
  const double links = inside_bytes_per_second(machine) / channels.count;
  const double limit = std::min(2 * channels.between_bytes_per_second, links);
  channels.inside_bytes_per_second = std::max(
      channels.inside_bytes_per_second, fastest_below(between_speeds(machine.spec.generation), limit / kGiga) * kGiga);
  return channels;
}

NcclChannels nvls_of(const NcclMachine& machine, const GroupPlacement& group) {
  const int most = group.nodes == 1 ? kMostChannels : nics_of(machine, group);
  const int heads = std::min(group.ranks_per_node, most);
  const double links = inside_bytes_per_second(machine) / kGiga / (heads + 1);
  NcclChannels channels = even(heads, fastest_below(inside_speeds(machine.spec.generation), links));
  if (group.nodes > 1) {
    const double nic = between_bytes_per_second(machine, group) / kGiga / heads;
    channels.between_bytes_per_second = fastest_below(between_speeds(machine.spec.generation), nic) * kGiga;
  }
  return channels;
}

}  // namespace

double inside_bytes_per_second(const NcclMachine& machine) {
  const double counted =
      machine.spec.nvlink ? kNvlinkCounted[static_cast<std::size_t>(machine.spec.generation)] : kPcieCounted;
  return machine.link_bytes_per_second * counted;
}

double between_bytes_per_second(const NcclMachine& machine, const GroupPlacement& group) {
  return machine.nic_bytes_per_second * kLineRateCounted * group.ranks_per_node / machine.devices_per_node;
}

NcclGraphs nccl_graphs(const NcclMachine& machine, const GroupPlacement& group) {
  assert(group.nodes == 1 || machine.nic_bytes_per_second > 0);
  NcclGraphs graphs;
  graphs.ring = group.nodes == 1 ? inside_one_node(machine) : across_nodes(machine, group);
  graphs.tree = group.nodes == 1 ? graphs.ring : tree_of(machine, graphs.ring);
  if (group.nodes > 1) {
    const double most = crossing_share(machine, group);
    graphs.ring = no_faster(graphs.ring, most);
    graphs.tree = no_faster(graphs.tree, most);
  }
  if (machine.spec.nvlink_sharp && group.ranks_per_node > 1) graphs.nvls = nvls_of(machine, group);
  if (machine.spec.ring) graphs.ring = *machine.spec.ring;
  if (machine.spec.tree) graphs.tree = *machine.spec.tree;
  if (machine.spec.nvls && graphs.nvls.count > 0) graphs.nvls = *machine.spec.nvls;
  return graphs;
}

}}  // namespace plumb::planner
