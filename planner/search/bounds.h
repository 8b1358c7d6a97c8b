#pragma once
// Bounds of a layout that need no simulation: a time that it cannot beat, and memory that it cannot do without. Both
// are sound, so that a search that drops a layout by them never drops the best.
//
//   const BoundOrder bound = bound_order(schedule);      // once for each order; memory by held_order.h
//   step_time_lower_bound(stage_table(priced), bound, microbatches);

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/evaluate/priced_layout.h"
#include "planner/search/held_order.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// Costs of stages, where stages of one kind share a row.
struct StageTable {
  const CostTable& kinds;              ///< a stage for each
  std::span<const int> kind_of_stage;  ///< [stage]
  std::span<const StageLink> links;    ///< in the order of pipeline_hops(); empty: a hop takes no time
};
inline StageTable stage_table(const PricedLayout& priced) {
  return {.kinds = priced.kinds, .kind_of_stage = priced.kind_of_stage, .links = priced.links};
}

/// The facts of an order that the bound of a step needs. They do not depend on the number of micro-batches.
struct BoundOrder {
  bool backwards = false;        ///< true if there are backwards
  bool split = false;            ///< true if they are split into I and W
  bool lanes = false;            ///< true if there are several lanes
  bool pairs = false;            ///< true if there are overlapped pairs, which hide collectives
  std::vector<int> rank;         ///< [stage]
  std::vector<int> predecessor;  ///< [stage] or -1
  std::vector<int> hop;      ///< [stage] the place in pipeline_hops() of that from its predecessor, or -1; then back
  std::vector<int> by_part;  ///< stages, predecessors first
  std::vector<int> root;     ///< [stage] the first of its lane
  std::vector<int> first_stage;  ///< [rank] the one with the first part, or -1
};
BoundOrder bound_order(const Schedule& schedule);

/// Returns a time before which no schedule of these stages ends. It adds for each rank the forwards of the parts before
/// its first one, the rank's own work on all micro-batches, the backwards of those parts (unless the backward is split:
/// weight gradients may run beside them), the messages between them, and the reduction (unless it starts inside a
/// backward) and optimizer step that come last. `order` may have any number of micro-batches. `waits` are times for which each rank waits between its
/// first and its last compute action; empty: none is known.
SimTime step_time_lower_bound(const StageTable& stages, const BoundOrder& order, std::int64_t microbatches,
                              std::span<const SimTime> waits = {});
SimTime step_time_lower_bound(const CostTable& costs, const Schedule& order, std::int64_t microbatches);

/// Returns a time for which the ranks of these stages compute at least, on average: forwards and backwards of all
/// micro-batches. It is 0 for several lanes, which share the micro-batches.
SimTime busy_lower_bound(const StageTable& stages, const BoundOrder& order, std::int64_t microbatches);

/// [rank] the most bytes that the compute actions of a rank hold at once, from their order alone: what a simulation
/// finds without the overlap of collectives and without received messages.
std::vector<std::int64_t> memory_in_issue_order(const CostTable& costs, const Schedule& order);

struct MemoryShortfall {
  int rank = 0;
  std::int64_t missing_bytes = 0;
  std::int64_t available_bytes = 0;
};

/// The rank that lacks most of a device's memory less what is reserved, where a share `headroom` of its peak stays free
/// besides; nothing if all fit.
std::optional<MemoryShortfall> memory_shortfall(const std::vector<std::int64_t>& peak_bytes, const DeviceSpec& device,
                                                double headroom = 0);

/// Returns the same of a layout's pipeline ranks, each of which has its site's device.
std::optional<MemoryShortfall> memory_shortfall(const std::vector<std::int64_t>& peak_bytes, const ClusterSpec& cluster,
                                                const Layout& layout, double headroom = 0);

/// "rank 0 lacks 3.2 GiB of the 79.9 GiB that a device has".
std::string to_text(const MemoryShortfall& shortfall);

}}  // namespace plumb::planner
