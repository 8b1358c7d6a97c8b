#pragma once
// The GPU's kernels on the host, for tests: bodies run with one lane a block, those for tensor cores warp by warp
// (tests/kernels/simt/host_block.h), matrices are multiplied by OpenBLAS.

#include <functional>
#include <memory>
#include <optional>

#include "executor/kernels/device_kernels.h"
#include "kernels/half_format.h"

namespace plumb::test {

/// Takes a kernel's work, to be done later, after what it took before.
using HostEnqueue = std::function<void(std::function<void()>)>;

/// Kernels that work on tensors stored as `half` (none: fp32), and leave their work with `enqueue`.
std::unique_ptr<DeviceKernels> make_host_kernels(std::optional<HalfFormat> half, HostEnqueue enqueue);

}  // namespace plumb::test
