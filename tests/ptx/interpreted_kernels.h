#pragma once
// DeviceKernels whose bodies run as the PTX that nvcc has made of them. Products are the host's.

#include <memory>
#include <optional>

#include "executor/kernels/device_kernels.h"
#include "kernels/half_format.h"
#include "tests/executor/machines/host_kernels.h"
#include "tests/ptx/interpreter.h"

namespace plumb::test {

/// Kernels that work on tensors stored as `half` (none: fp32), and leave their work with `enqueue`.
/// `interpreter` has the module of executor/machines/cuda/cuda_kernels.cu, and outlives the kernels. The kernels add
/// their scratch to its memory. Bodies that divide elements have as many blocks as so many multiprocessors want.
std::unique_ptr<DeviceKernels> make_interpreted_kernels(std::optional<HalfFormat> half, HostEnqueue enqueue,
                                                        ptx::Interpreter& interpreter, int multiprocessors);

}  // namespace plumb::test
