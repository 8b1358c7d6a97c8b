#pragma once
// Opens libplumb_cuda.so: the tool itself needs no CUDA to be built, nor to be there.

#include <string>
#include <vector>

#include "executor/cuda_library/cuda_library.h"

namespace plumb { inline namespace executor {

/// Sets what CUDA and NCCL read at their first call, unless the user has set it. CUDA_DEVICE_MAX_CONNECTIONS is 32, so that
/// no two streams of a rank share a hardware queue. Where the rank meets others, CUDA_MODULE_LOADING is EAGER: code that is
/// loaded when a kernel is first launched may wait for the device, and so for kernels of NCCL whose peers wait, too ("CUDA
/// C++ Programming Guide, Lazy Loading"); and NCCL_LAUNCH_ORDER_IMPLICIT is 1: kernels of several communicators start in
/// the order of their calls, which is the same on all ranks.
void set_cuda_environment(bool meets_others);

/// Returns the library of this version of Plumb, looked for in `folder` first and then where the system looks. Throws
/// RunError, with the remedy, if it is missing, does not open or is of another version.
const CudaLibrary& open_cuda_library(const std::string& folder, const std::string& version);

/// Returns the library's devices. Throws RunError if the driver has none.
std::vector<CudaDevice> cuda_devices(const CudaLibrary& library);

}}  // namespace plumb::executor
