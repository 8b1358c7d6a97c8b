#pragma once
// Opens libplumb_cuda.so: the tool itself needs no CUDA to be built, nor to be there.

#include <string>
#include <vector>

#include "executor/device/cuda_library.h"

namespace plumb { inline namespace executor {

/// Returns the library of this version of Plumb, looked for in `folder` first and then where the system looks. Throws
/// RunError, with the remedy, if it is missing, does not open or is of another version.
const CudaLibrary& open_cuda_library(const std::string& folder, const std::string& version);

/// Returns the library's devices. Throws RunError if the driver has none.
std::vector<CudaDevice> cuda_devices(const CudaLibrary& library);

}}  // namespace plumb::executor
