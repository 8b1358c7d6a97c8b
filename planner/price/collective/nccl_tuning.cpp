#include "planner/price/collective/nccl_tuning.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

/// One path's inputs: machine, group and graphs, algorithm and protocol.
struct PathQuestion {
  const NcclMachine& machine;
  const GroupPlacement& group;
  const NcclGraphs& graphs;
  CollectiveKind kind;
  NcclAlgorithm algorithm;
  NcclProtocol protocol;
};

bool is_gather_or_scatter(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
}

int steps_of(CollectiveKind kind, int ranks) {
  if (kind == CollectiveKind::kAllReduce) return 2 * (ranks - 1);
  return is_gather_or_scatter(kind) ? ranks - 1 : ranks;
}

int log2_floor(int value) {
  return std::bit_width(static_cast<unsigned>(value)) - 1;
}

bool nvls_enabled(const PathQuestion& q) {
  if (q.graphs.nvls.count == 0 || q.kind == CollectiveKind::kBroadcast) return false;
  if (q.algorithm == NcclAlgorithm::kNvlsTree) return q.group.nodes > 1 && q.kind == CollectiveKind::kAllReduce;
  return q.group.nodes == 1 || q.machine.spec.network_sharp;
}

bool collnet_enabled(const PathQuestion& q) {
  constexpr int kMostLocalRanks = 8;
  if (!q.machine.spec.network_sharp || q.group.nodes == 1) return false;
  if (q.algorithm == NcclAlgorithm::kCollNetChain) return q.kind == CollectiveKind::kAllReduce;
  if (q.group.ranks_per_node > kMostLocalRanks || !q.machine.spec.nvlink) return false;
  return q.kind == CollectiveKind::kAllReduce ||
         (is_gather_or_scatter(q.kind) && q.group.ranks_per_node <= q.graphs.ring.count);
}

bool enabled(const PathQuestion& q) {
  const bool simple = q.protocol == NcclProtocol::kSimple;
  switch (q.algorithm) {
    case NcclAlgorithm::kRing:
      return q.protocol != NcclProtocol::kLL128 || q.machine.spec.nvlink;
    case NcclAlgorithm::kTree:
      return q.kind == CollectiveKind::kAllReduce && (q.protocol != NcclProtocol::kLL128 || q.machine.spec.nvlink);
    case NcclAlgorithm::kNvls:
    case NcclAlgorithm::kNvlsTree:
      return simple && nvls_enabled(q);
    case NcclAlgorithm::kCollNetDirect:
    case NcclAlgorithm::kCollNetChain:
      return simple && collnet_enabled(q);
    case NcclAlgorithm::kPat:
      return simple && is_gather_or_scatter(q.kind) && q.group.nodes > 1 && q.group.ranks == q.group.nodes;
  }
  return false;
}

double ring_bus(const PathQuestion& q, double bus) {
  const NcclSpec& spec = q.machine.spec;
  if (q.protocol == NcclProtocol::kLL)
    return std::min(ll_bus_cap(spec.generation, spec.host_cpu, q.group.nodes) * kGiga, bus / 2);
  if (q.protocol == NcclProtocol::kLL128)
    return std::min(0.92 * bus, q.graphs.ring.count * ring_ll128_channel_cap(spec.generation) * kGiga);
  return bus;
}

double tree_bus(const PathQuestion& q, double bus) {
  const NcclSpec& spec = q.machine.spec;
  const int nodes = q.group.nodes;
  const int channels = q.graphs.tree.count;
  bus = std::min(0.92 * bus, channels * tree_simple_channel_cap(spec.generation, nodes) * kGiga);
  if (q.protocol == NcclProtocol::kLL)
    bus = std::min(bus / 3.8, ll_bus_cap(spec.generation, spec.host_cpu, nodes) * kGiga);
  if (q.protocol == NcclProtocol::kLL128) {
    bus = std::min(bus * (nodes == 1 ? 7.0 / 9 : 15.0 / 16),
                   channels * tree_ll128_channel_cap(spec.generation, nodes) * kGiga);
  }
  return spec.balanced_tree ? bus : 0.85 * bus;
}

double nvls_bus(const PathQuestion& q) {
  const NcclChannels& channels = q.graphs.nvls;
  const double share =
      is_gather_or_scatter(q.kind) ? static_cast<double>(q.group.ranks_per_node - 1) / q.group.ranks_per_node : 2;
  double speed = channels.inside_bytes_per_second * nvls_efficiency(q.machine.spec.generation) * (channels.count - 1) /
                 channels.count * share;
  if (q.algorithm == NcclAlgorithm::kNvlsTree) {
    speed = std::min({speed, channels.between_bytes_per_second * (q.group.nodes == 2 ? 2 : 1),
                      nvls_tree_channel_cap(q.machine.spec.generation, q.group.nodes) * kGiga});
  } else if (q.group.nodes > 1) {
    speed = std::min(speed, channels.between_bytes_per_second);
  }
  return channels.count * speed;
}

/// Returns the bytes a second of the algorithm.
double bandwidth(const PathQuestion& q) {
  const GroupPlacement& group = q.group;
  const NcclChannels& channels = q.algorithm == NcclAlgorithm::kTree ? q.graphs.tree : q.graphs.ring;
  const double bus =
      channels.count * (group.nodes <= 2 ? channels.inside_bytes_per_second : channels.between_bytes_per_second);
  const double ring_ratio = static_cast<double>(group.ranks) / steps_of(q.kind, group.ranks);
  switch (q.algorithm) {
    case NcclAlgorithm::kRing:
      return ring_bus(q, bus) * ring_ratio;
    case NcclAlgorithm::kTree:
      return tree_bus(q, bus) / 2;
    case NcclAlgorithm::kNvls:
    case NcclAlgorithm::kNvlsTree:
      return nvls_bus(q) * (is_gather_or_scatter(q.kind) ? 1 : ring_ratio);
    case NcclAlgorithm::kCollNetDirect: {
      if (is_gather_or_scatter(q.kind)) {
        return group.ranks_per_node *
               std::min(channels.inside_bytes_per_second, 0.9 * channels.between_bytes_per_second);
      }
      const double devices_per_channel = static_cast<double>(group.ranks_per_node) / channels.count;
      const double factor = devices_per_channel - (devices_per_channel - 1) / 2;
      const double hopper = q.machine.spec.generation >= NcclGeneration::kHopper ? 0.85 : 1;
      return channels.count * channels.inside_bytes_per_second / factor * hopper / 2;
    }
    case NcclAlgorithm::kCollNetChain:
      return channels.count * channels.inside_bytes_per_second / 2;
    case NcclAlgorithm::kPat:
      return 0.75 * bus;
  }
  return 0;
}

/// Returns the microseconds of latency.
double latency_us(const PathQuestion& q) {
  const NcclSpec& spec = q.machine.spec;
  const GroupPlacement& group = q.group;
  const int nodes = group.nodes;
  const int inside_hops = group.ranks / nodes - 1;
  const bool simple = q.protocol == NcclProtocol::kSimple;
  const NcclWire wire = spec.nvlink ? NcclWire::kNvlink : NcclWire::kPcie;
  const double base = base_latency_us(q.algorithm, q.protocol);
  const double inside = hop_latency_us(wire, q.algorithm, q.protocol);
  const NcclAlgorithm network_as = inside_hops == 0 ? NcclAlgorithm::kTree : q.algorithm;
  const double network =
      hop_latency_us(NcclWire::kNetwork, network_as, q.protocol) + spec.nic_latency.count() / kMicro * (simple ? 2 : 1);
  switch (q.algorithm) {
    case NcclAlgorithm::kRing: {
      if (q.kind == CollectiveKind::kBroadcast) {
        return base + hop_latency_us(nodes == 1 ? wire : NcclWire::kNetwork, q.algorithm, q.protocol);
      }
      const int crossings = steps_of(q.kind, nodes);
      const double post = nodes == 1 ? 0 : network_post_us(spec.host_cpu, q.protocol);
      return base + (steps_of(q.kind, group.ranks) - crossings) * std::max(inside, post) + crossings * network;
    }
    case NcclAlgorithm::kTree:
      return base + 2 * (inside_hops * inside + log2_floor(nodes) * network);
    case NcclAlgorithm::kNvls:
      return inside + (nodes > 1 ? network : 0);
    case NcclAlgorithm::kNvlsTree:
      return inside + 2 * log2_floor(nodes) * network;
    case NcclAlgorithm::kCollNetDirect:
      return 2 * (std::min(1, inside_hops) * inside + 0.4 * inside_hops) + network;
    case NcclAlgorithm::kCollNetChain:
      return 2 * inside_hops * inside + network;
    case NcclAlgorithm::kPat:
      return base + log2_floor(nodes) * network / 3.5 + 2.8 * group.ranks;
  }
  return 0;
}

/// Returns the factor on a ring's latency in its plateau.
double plateau(const NcclTuning& tuning, std::int64_t bytes) {
  constexpr std::int64_t kLeastBytes = 64;
  if (tuning.kind != CollectiveKind::kAllReduce || tuning.group.nodes == 1) return 1;
  if (bytes / (static_cast<std::int64_t>(tuning.graphs.ring.count) * tuning.group.ranks) < kLeastBytes) return 1;
  return tuning.generation == NcclGeneration::kVolta ? 1.9 : 1.4;
}

}  // namespace

NcclTuning nccl_tuning(const NcclMachine& machine, const GroupPlacement& group, CollectiveKind kind) {
  assert(kind != CollectiveKind::kAllToAll && group.ranks > 1);
  NcclTuning tuning{
      .kind = kind, .group = group, .generation = machine.spec.generation, .graphs = nccl_graphs(machine, group)};
  for (int algorithm = 0; algorithm < kNcclAlgorithmCount; ++algorithm) {
    for (int protocol = 0; protocol < kNcclProtocolCount; ++protocol) {
      const PathQuestion question{.machine = machine,
                                  .group = group,
                                  .graphs = tuning.graphs,
                                  .kind = kind,
                                  .algorithm = static_cast<NcclAlgorithm>(algorithm),
                                  .protocol = static_cast<NcclProtocol>(protocol)};
      if (!enabled(question)) continue;
      tuning.paths[algorithm][protocol] = {.latency = Seconds{latency_us(question) * kMicro},
                                           .bytes_per_second = bandwidth(question)};
    }
  }
  return tuning;
}

NcclEstimate nccl_choice(const NcclTuning& tuning, std::int64_t bytes, std::optional<NcclAlgorithm> only) {
  NcclEstimate best;
  double best_seconds = std::numeric_limits<double>::infinity();
  for (int algorithm = 0; algorithm < kNcclAlgorithmCount; ++algorithm) {
    const auto as = static_cast<NcclAlgorithm>(algorithm);
    if (only && as != *only) continue;
    for (int protocol = 0; protocol < kNcclProtocolCount; ++protocol) {
      const NcclPath& path = tuning.paths[algorithm][protocol];
      if (path.bytes_per_second <= 0) continue;
      const auto with = static_cast<NcclProtocol>(protocol);
      double rate = path.bytes_per_second;
      double latency = path.latency.count();
      if (as == NcclAlgorithm::kTree) rate *= tree_correction(with, bytes);
      if (as == NcclAlgorithm::kRing && with == NcclProtocol::kSimple) latency *= plateau(tuning, bytes);
      const double transfer = static_cast<double>(bytes) / rate;
      if (latency + transfer >= best_seconds) continue;
      best_seconds = latency + transfer;
      best = {.algorithm = as, .protocol = with, .latency = Seconds{latency}, .transfer = Seconds{transfer}};
    }
  }
  assert(std::isfinite(best_seconds));
  return best;
}

Seconds calibrated(const NcclCalibration& calibration, const NcclEstimate& estimate) {
  const Seconds launch =
      estimate.protocol == NcclProtocol::kSimple ? calibration.simple_launch : calibration.low_latency_launch;
  return estimate.latency + launch + estimate.transfer / calibration.bandwidth_scale;
}

}}  // namespace plumb::planner
