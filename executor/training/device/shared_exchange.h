#pragma once
// An exchange between ranks that share a device: every member does a share of it with kernels on its own stream, behind
// all members' events (executor/program/device/world_calls.h), in the memory of all. Sums are in the order of the members,
// whichever member makes them.

#include <vector>

#include "executor/groups/device_exchange.h"
#include "executor/kernels/device_kernels.h"

namespace plumb { inline namespace executor {

/// Enqueues the share of `member`. members: [member] each one's part, of one kind and size. element_bytes: size of an
/// element as activations are stored.
void enqueue_share(DeviceKernels& kernels, const std::vector<const DeviceExchange*>& members, std::size_t member,
                   std::int64_t element_bytes);

}}  // namespace plumb::executor
