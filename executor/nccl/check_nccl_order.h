#pragma once
// Proves of an NcclOrder, without a device, that the ranks agree and that it cannot deadlock.
//
// The rules are NCCL's (2.28): sends and receives match in order by communicator and peer, collectives in order by
// communicator; a call is a kernel that holds its stream, and one of the device's places for kernels that wait, from
// its start until all who take part have started; with NCCL_LAUNCH_ORDER_IMPLICIT=1 the calls of a device start in the
// order in which its host makes them; those between ncclGroupStart and ncclGroupEnd start together, and are one kernel
// where they share a communicator.
//
// Under these rules a step that can be taken stays possible whatever else happens, as each waits for counts that only
// grow: its stream, its waits, the start of the call before, and kernels that have ended. So every order of progress
// comes to the same end (it is a marked graph with bounded places; Commoner et al. 1971), and playing one to its end
// decides for all of them. Where it ends early, the calls that stand and what each waits for are named.

#include <string>
#include <vector>

#include "executor/nccl/nccl_order.h"

namespace plumb { inline namespace executor {

struct NcclLimits {
  int channels = 0;  ///< kernels that may wait on one device at a time; 0: as many as there are communicators
  bool implicit_order =
      true;  ///< calls start in the host's order; without it each stream may start its own, and kernels
             ///< that take all channels could keep out what they wait for: refused with fewer channels than streams
  int queue_depth = 0;  ///< calls that a host can have under way before it waits for the oldest; 0: no limit
};

/// What is wrong, a sentence each, the first few; empty if nothing is. `schedule` names actions; null: their places.
std::vector<std::string> check_nccl_order(const NcclOrder& order, const NcclLimits& limits = {},
                                          const Schedule* schedule = nullptr, const RankGrid* grid = nullptr);

/// The fewest channels with which it does not deadlock; 0 if it does with any number, or the ranks disagree.
int channels_needed(const NcclOrder& order);

}}  // namespace plumb::executor
