#pragma once
// The partition of a measured graph into stages of one or more devices each; the replicas of a stage take micro-batches
// in turn. It is PipeDream's objective (Narayanan et al. 2019, section 3.1) without its optimizer's faults:
//   stage     t_0 = T; t_l = (t_(l-1) + 4 (r_l - 1) W / (B_l r_l n_(l-1))) / r_l
//             T seconds and W bytes of weights of the nodes, all-reduced over r_l parts of level l with links of B_l
//             bytes a second; n_(l-1) replicas in each part share what goes between parts
//   transfer  2 a / (B r)   a bytes of activations one way and as many of gradients the other, of one micro-batch,
//             shared by the r replicas of each end
// A stage holds its state and ceil(m / r) micro-batches in flight, where m is the sum of the replicas from it to the end.
//
// Stages are packed from the last one on. A stage of fewer devices than a machine has lies within one; a larger one
// fills whole machines, and so on outwards; devices that this leaves over are idle. The sender of a transfer uses the
// level of the smallest part with all its devices and the nearest one of the receiver; the receiver uses that of its
// outermost device and the next. The outermost level may also be shared among equal copies of the whole pipeline, which
// take micro-batches in turn and sum their weights over that level's links.

#include <limits>
#include <optional>
#include <vector>

#include "planner/partition/downsets.h"
#include "planner/partition/stage.h"

namespace plumb { inline namespace planner {

struct ReplicatedLimits {
  std::vector<MachineLevel> levels;                        ///< from the devices of one machine outwards
  double bytes = std::numeric_limits<double>::infinity();  ///< memory of a device
  bool transfers = true;
  bool straight = false;  ///< one device a stage
};

/// Returns the fastest partition that cuts at the downsets; nothing if none fits the memory. It may leave devices
/// unused, so that more devices never make it slower. Nodes run in their first way.
std::optional<StagePartition> replicated_partition(const ProfiledGraph& graph, const Downsets& downsets,
                                                   const ReplicatedLimits& limits);

}}  // namespace plumb::planner
