#pragma once
// Proves of an NcclOrder, without a device, that the ranks agree and that it cannot deadlock.
//
// The rules are NCCL's (2.28). Sends and receives match in order by communicator and peer, collectives in order by
// communicator. A call is a kernel that holds its stream, and one of the device's places for kernels that wait, from
// its start until all ranks that take part have started. With NCCL_LAUNCH_ORDER_IMPLICIT=1 the calls of a device start
// in the order in which its host makes them. Calls between ncclGroupStart and ncclGroupEnd start together, and are one
// kernel where they share a communicator.
//
// Under these rules a step that can be taken stays possible whatever else happens, as each step waits for counts that
// only grow: its stream, its waits, the start of the call before, and kernels that have ended. So every order of
// progress comes to the same end (it is a marked graph with bounded places; Commoner et al. 1971), and playing one to
// its end decides for all of them. Where it ends early, the faults name the calls that stand and what each waits for.

#include <string>
#include <vector>

#include "tests/executor/transport/nccl/order/nccl_order.h"

namespace plumb::test {

struct NcclLimits {
  int channels = 0;  ///< kernels that may wait on one device at a time; 0: as many as there are communicators
  /// Calls start in the host's order. Without it each stream may start its own, and kernels that take all channels
  /// could keep out the calls that they wait for: such an order is refused with fewer channels than streams.
  bool implicit_order = true;
  int queue_depth = 0;  ///< calls that a host can have under way before it waits for the oldest; 0: no limit
};

/// Returns the first few faults, a sentence each; empty if there are none.
std::vector<std::string> check_nccl_order(const NcclOrder& order, const NcclLimits& limits = {});

/// Returns the fewest channels with which the order does not deadlock; 0 if it does with any number, or if the ranks
/// disagree.
int channels_needed(const NcclOrder& order);

}  // namespace plumb::test
