#pragma once
// What a layout keeps in the host's memory, and what that costs.
//
//   optimizer    (ZeRO-Offload, Ren et al. 2021) gradients go down in the computing precision as the last backward
//   makes
//                them, the CPU updates at the host's memory bandwidth, which the devices of a node share, and weights
//                go up as they are updated. Exposed: max(0, down - backward) + max(update, up)
//   activations  all but kKeptActivations of a rank's wait in the host (schedules/passes/add_offload.h); OFFLOAD and
//                RELOAD take their bytes over the device's link, beside the compute: the simulation says what is
//                exposed
//
// With ZeRO each replica moves and updates its shard; without, every one does it all.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/training_spec.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// Activations that a rank keeps on its device where the others are offloaded: the one at work, and the next.
inline constexpr int kKeptActivations = 2;

/// How long the step of `parameters` (of one device) lasts from the end of a last backward that took `backward`.
/// `devices_on_host` share the host's memory. Throws SpecError if the cluster says nothing of its host.
Seconds offloaded_step(const ClusterSpec& cluster, const TrainingSpec& training, std::int64_t parameters,
                       Seconds backward);

/// How long `bytes` take between a device and its host. Throws as offloaded_step.
Seconds host_move_time(const ClusterSpec& cluster, std::int64_t bytes);

/// The schedule with its OFFLOADs and RELOADs, if the layout offloads activations.
Schedule with_offload(Schedule order, const Layout& layout);

/// Bytes that one device of each pipeline rank keeps in its host: the state of the optimizer (`optimizer_bytes`, by
/// stage) and at the peak all activations but the kept ones. `order` is the compute order.
std::vector<std::int64_t> host_bytes_by_rank(const CostTable& costs, const std::vector<std::int64_t>& optimizer_bytes,
                                             const Layout& layout, const Schedule& order);

/// Why the host of the fullest node cannot hold that; nothing if it can.
std::optional<std::string> host_shortfall(const ClusterSpec& cluster, const Layout& layout,
                                          const std::vector<std::int64_t>& bytes_by_rank);

}}  // namespace plumb::planner
