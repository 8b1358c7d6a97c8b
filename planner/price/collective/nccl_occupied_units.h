#pragma once
// The compute units that a collective takes from the device beside whose compute it runs. NCCL starts one block of
// threads for each channel, which holds a compute unit as long as the collective lasts, whatever the unit would have
// computed:
//
//   compute that lasts T alone, beside a collective of t <= T:   T + t * occupied / units
//
// For rings NCCL doubles the channels of its graph search (one set for each half of the data), up to 32.
// Source: NVIDIA/nccl v2.30.7 src/graph/connect.cc (ncclTopoPostset duplicates the channels), src/enqueue.cc (a block
// for each channel), src/include/device.h (Apache-2.0, facts restated).

#include "planner/price/collective/nccl_channels.h"

namespace plumb { inline namespace planner {

/// Returns the compute units that a collective of the group holds; 0 where it has one rank.
int occupied_units(const NcclMachine& machine, const GroupPlacement& group);

}}  // namespace plumb::planner
