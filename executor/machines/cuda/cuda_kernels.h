#pragma once
// DeviceKernels on a stream of a GPU.

#include <cuda_runtime.h>

#include <memory>
#include <optional>

#include "executor/kernels/device_kernels.h"
#include "executor/machines/cuda/matrix_products.h"
#include "kernels/half_format.h"

namespace plumb { inline namespace executor { namespace cuda {

/// Makes the kernels of a stream. Tensors are stored in `half`, or in fp32 if there is none; `products` multiplies
/// tensors of the same format and outlives the kernels.
std::unique_ptr<DeviceKernels> make_cuda_kernels(std::optional<HalfFormat> half, MatrixProducts& products,
                                                 cudaStream_t stream, int multiprocessors);

}}}  // namespace plumb::executor::cuda
