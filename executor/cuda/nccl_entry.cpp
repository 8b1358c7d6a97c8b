// What libplumb_cuda.so has of NCCL (executor/nccl/nccl_library.h).

#include <algorithm>
#include <exception>

#include "executor/cuda/nccl_devices.h"
#include "executor/nccl/nccl_library.h"

namespace plumb {
namespace {

std::string measure(const NcclMeasureOptions& options, std::vector<NcclSample>& samples, std::string& nccl_version) {
  try {
    nccl_version = cuda::nccl_version();
    std::int64_t most = 4;
    for (const std::int64_t size : options.sizes_bytes) most = std::max(most, size);
    cuda::NcclGpus gpus(options.ranks, most + 4096);
    samples = measure_nccl(gpus, options);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

constexpr NcclLibrary kLibrary{.version = PLUMB_VERSION, .measure = measure};

}  // namespace
}  // namespace plumb

extern "C" __attribute__((visibility("default"))) const plumb::NcclLibrary* plumb_nccl_library() {
  return &plumb::kLibrary;
}
