#pragma once
// The state that a layout keeps in the host's memory, and its cost.
//
//   optimizer    (ZeRO-Offload, Ren et al. 2021) Gradients go down in the computing precision as the last backward
//                makes them. The CPU updates at the host's memory bandwidth, which the devices of a node share. Weights
//                go up as they are updated. Exposed: max(0, down - backward) + max(update, up), and no less than the
//                device's own step, as the copies are launched tensor by tensor like its kernels.
//   activations  All but kKeptActivations of a rank's activations wait in the host (schedules/passes/add_offload.h).
//                OFFLOAD and RELOAD take their bytes over the device's link, beside the compute; the simulation finds
//                the exposed part.
//
// With ZeRO each replica moves and updates its shard; without ZeRO every replica does it all.

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

/// Activations that a rank keeps on its device where the others are offloaded: those of the current micro-batch and of
/// the next.
inline constexpr int kKeptActivations = 2;

/// Returns the time of a step over `parameters` of one device, from the end of a last backward that took `backward`.
/// `devices_on_host` share the host's memory. Throws SpecError if the cluster says nothing of its host.
Seconds offloaded_step(const ClusterSpec& cluster, const TrainingSpec& training, std::int64_t parameters,
                       Seconds backward);

/// Returns the time of `bytes` between a device and its host. Throws as offloaded_step.
Seconds host_move_time(const ClusterSpec& cluster, std::int64_t bytes);

/// Returns the schedule, with OFFLOADs and RELOADs if the layout offloads activations.
Schedule with_offload(Schedule order, const Layout& layout);

/// Bytes that one device of each pipeline rank keeps in its host: the state of the optimizer (`optimizer_bytes`, by
/// stage) and at the peak all activations but the kept ones. `order` is the compute order.
std::vector<std::int64_t> host_bytes_by_rank(const CostTable& costs, const std::vector<std::int64_t>& optimizer_bytes,
                                             const Layout& layout, const Schedule& order);

/// Returns why the host of the fullest node cannot hold these bytes; nothing if it can.
std::optional<std::string> host_shortfall(const ClusterSpec& cluster, const Layout& layout,
                                          const std::vector<std::int64_t>& bytes_by_rank);

}}  // namespace plumb::planner
