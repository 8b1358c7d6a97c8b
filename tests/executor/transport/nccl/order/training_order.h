#pragma once
// The calls of NCCL that training makes on ranks with a device each, as its device executor enqueues them.

#include "executor/spec/run_spec.h"
#include "tests/executor/transport/nccl/order/nccl_order.h"

namespace plumb::test {

/// Returns all ranks' calls of one step. Nothing is exchanged and no kernel runs. Bytes count 4 to an element, as the
/// cpu backend has tensor ranks' partial sums in fp32 and a device has them as activations are stored. Throws what
/// run_device_rank() throws.
NcclOrder training_order(RunSpec spec);

}  // namespace plumb::test
