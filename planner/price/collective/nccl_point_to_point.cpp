#include "planner/price/collective/nccl_point_to_point.h"

#include <algorithm>
#include <cmath>

#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

constexpr int kPeersPerBatch = 8;

NcclProtocol protocol_of(const NcclMachine& machine, const GroupPlacement& group, std::int64_t bytes_per_peer) {
  constexpr double kLowLatencyBytesPerChannel = 16 << 10;
  constexpr double kNvlinkBytesPerSecond = 20e9;
  const double links = inside_bytes_per_second(machine) / kNvlinkBytesPerSecond;
  const double channels = group.nodes == 1 && machine.spec.nvlink ? 2 * std::max(1.0, std::floor(links)) : 2;
  return static_cast<double>(bytes_per_peer) <= kLowLatencyBytesPerChannel * channels ? NcclProtocol::kLL
                                                                                      : NcclProtocol::kSimple;
}

Seconds latency_of(const NcclMachine& machine, const GroupPlacement& group, NcclProtocol protocol, int batches) {
  const NcclWire inside = machine.spec.nvlink ? NcclWire::kNvlink : NcclWire::kPcie;
  const double flushes = protocol == NcclProtocol::kSimple ? 2 : 1;
  const double nic_us = group.nodes > 1 ? flushes * machine.spec.nic_latency.count() / kMicro : 0;
  const double hop_us =
      hop_latency_us(group.nodes > 1 ? NcclWire::kNetwork : inside, NcclAlgorithm::kRing, protocol) + nic_us;
  return Seconds{(base_latency_us(NcclAlgorithm::kRing, protocol) + batches * hop_us) * kMicro};
}

/// Returns one rank's share of its node's NICs.
double nic_share(const NcclMachine& machine) {
  return between_bytes_per_second(machine, {.ranks = 2, .nodes = 2, .ranks_per_node = 1});
}

}  // namespace

NcclEstimate nccl_send(const NcclMachine& machine, const GroupPlacement& group, std::int64_t bytes) {
  const NcclProtocol protocol = protocol_of(machine, group, bytes);
  const double path = group.nodes > 1 ? nic_share(machine) : inside_bytes_per_second(machine);
  return {.protocol = protocol,
          .latency = latency_of(machine, group, protocol, 1),
          .transfer = Seconds{static_cast<double>(bytes) / path}};
}

NcclEstimate nccl_all_to_all(const NcclMachine& machine, const GroupPlacement& group, std::int64_t bytes) {
  const double part = static_cast<double>(bytes) / group.ranks;
  const NcclProtocol protocol = protocol_of(machine, group, bytes / group.ranks);
  const int inside_peers = group.ranks_per_node - 1;
  const double inside = inside_peers > 0 ? part * inside_peers / inside_bytes_per_second(machine) : 0;
  const double outside = group.nodes > 1 ? part * (group.ranks - group.ranks_per_node) / nic_share(machine) : 0;
  const double copy = machine.copy_bytes_per_second > 0 ? part / machine.copy_bytes_per_second : 0;
  const int batches = (group.ranks + kPeersPerBatch - 1) / kPeersPerBatch;
  return {.protocol = protocol,
          .latency = latency_of(machine, group, protocol, batches),
          .transfer = Seconds{std::max(inside, outside) + copy}};
}

}}  // namespace plumb::planner
