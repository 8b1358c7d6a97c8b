#include "planner/evaluate/host_offload.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/passes/add_offload.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

const HostSpec& host_of(const ClusterSpec& cluster) {
  if (cluster.host) return *cluster.host;
  throw SpecError(
      fmt::format("cluster {} says nothing of its host, and offload needs it: add \"host\" with memory_gib, "
                  "memory_bandwidth_gb_per_s and device_bandwidth_gb_per_s, or leave offload out",
                  cluster.name));
}

int devices_on_host(const ClusterSpec& cluster) {
  return std::min(cluster.devices, cluster.devices_per_node);
}

}  // namespace

Seconds offloaded_step(const ClusterSpec& cluster, const TrainingSpec& training, std::int64_t parameters,
                       Seconds backward) {
  const HostSpec& host = host_of(cluster);
  const Seconds moved = host_move_time(cluster, parameters * bytes_per_element(training.precision));
  const auto traffic = static_cast<double>(parameters * devices_on_host(cluster)) *
                       static_cast<double>(optimizer_traffic_per_parameter(training));
  const Seconds update{traffic / (host.memory_bytes_per_second * host.memory_efficiency)};
  return std::max(Seconds{0}, moved - backward) + std::max(update, moved);
}

Seconds host_move_time(const ClusterSpec& cluster, std::int64_t bytes) {
  const HostSpec& host = host_of(cluster);
  return Seconds{static_cast<double>(bytes) / (host.device_bytes_per_second * host.device_efficiency)};
}

Schedule with_offload(Schedule order, const Layout& layout) {
  return layout.offload.activations ? add_offload(std::move(order), kKeptActivations) : std::move(order);
}

std::vector<std::int64_t> host_bytes_by_rank(const CostTable& costs, const std::vector<std::int64_t>& optimizer_bytes,
                                             const Layout& layout, const Schedule& order) {
  std::vector<std::int64_t> bytes(order.ranks.size(), 0);
  if (layout.offload.optimizer) {
    for (std::size_t stage = 0; stage < order.stages.size(); ++stage) {
      bytes[static_cast<std::size_t>(order.stages[stage].rank)] += optimizer_bytes[stage];
    }
  }
  const Schedule moving = with_offload(order, layout);
  for (std::size_t rank = 0; rank < moving.ranks.size(); ++rank) {
    std::int64_t away = 0;
    std::int64_t most = 0;
    for (const Action& action : moving.ranks[rank]) {
      const std::int64_t moved = costs.stages[static_cast<std::size_t>(action.stage)].memory.forward_bytes;
      if (action.op == Op::kOffload) away += moved;
      if (action.op == Op::kReload) away -= moved;
      most = std::max(most, away);
    }
    bytes[rank] += most;
  }
  return bytes;
}

std::optional<std::string> host_shortfall(const ClusterSpec& cluster, const Layout& layout,
                                          const std::vector<std::int64_t>& bytes_by_rank) {
  if (!layout.offload.optimizer && !layout.offload.activations) return std::nullopt;
  const int block = layout.tensor * layout.context * layout.data;
  std::int64_t fullest = 0;
  for (int first = 0; first < cluster.devices; first += cluster.devices_per_node) {
    std::int64_t node = 0;
    const int end = std::min(cluster.devices, first + cluster.devices_per_node);
    for (int device = first; device < end; ++device) node += bytes_by_rank[static_cast<std::size_t>(device / block)];
    fullest = std::max(fullest, node);
  }
  const std::int64_t available = host_of(cluster).memory_bytes;
  if (fullest <= available) return std::nullopt;
  return fmt::format("a node offloads {:.1f} GiB, and its host has {:.1f}: shard with zero=1, or offload less",
                     static_cast<double>(fullest) / kGibibyte, static_cast<double>(available) / kGibibyte);
}

}}  // namespace plumb::planner
