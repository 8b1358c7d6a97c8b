#include "executor/machines/cuda/green_contexts.h"

#include <cudaTypedefs.h>

#include <algorithm>

#include <fmt/format.h>

#include "executor/machines/cuda/check_cuda.h"
#include "executor/program/device/sm_split.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor { namespace cuda {
namespace {

/// Returns a function of the driver, which is not linked, or null if this driver does not have it.
template <class Function>
Function driver_function(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<Function>(function);
}

}  // namespace

struct GreenContexts::Driver {
  PFN_cuDeviceGetDevResource_v12040 resource_of =
      driver_function<PFN_cuDeviceGetDevResource_v12040>("cuDeviceGetDevResource", 12040);
  PFN_cuDevSmResourceSplitByCount_v12040 split =
      driver_function<PFN_cuDevSmResourceSplitByCount_v12040>("cuDevSmResourceSplitByCount", 12040);
  PFN_cuDevResourceGenerateDesc_v12040 describe =
      driver_function<PFN_cuDevResourceGenerateDesc_v12040>("cuDevResourceGenerateDesc", 12040);
  PFN_cuGreenCtxCreate_v12040 create = driver_function<PFN_cuGreenCtxCreate_v12040>("cuGreenCtxCreate", 12040);
  PFN_cuGreenCtxDestroy_v12040 destroy = driver_function<PFN_cuGreenCtxDestroy_v12040>("cuGreenCtxDestroy", 12040);
  PFN_cuGreenCtxStreamCreate_v12050 create_stream =
      driver_function<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate", 12050);

  bool is_whole() const {
    return resource_of != nullptr && split != nullptr && describe != nullptr && create != nullptr &&
           destroy != nullptr && create_stream != nullptr;
  }
};

GreenContexts::GreenContexts(int device, int ranks, const std::vector<int>& shares)
    : driver_(std::make_unique<Driver>()) {
  if (!driver_->is_whole())
    refused_ = "the driver has no green contexts";
  else if (!make(device, ranks, shares))
    destroy();
}

GreenContexts::~GreenContexts() {
  destroy();
}

void GreenContexts::destroy() {
  for (CUgreenCtx context : contexts_) driver_->destroy(context);
  contexts_.clear();
  multiprocessors_.clear();
}

/// Makes the contexts. Returns false, and sets the reason, if the driver refuses.
bool GreenContexts::make(int device, int ranks, const std::vector<int>& shares) {
  const auto gives = [&](CUresult result, const char* what) {
    if (result != CUDA_SUCCESS)
      refused_ = fmt::format("the driver does not give {} (error {})", what, static_cast<int>(result));
    return result == CUDA_SUCCESS;
  };
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "the GPU");
  const auto smallest = static_cast<unsigned>(smallest_sm_group(major));
  CUdevResource all{};
  // A device's number is its handle.
  if (!gives(driver_->resource_of(device, &all, CU_DEV_RESOURCE_TYPE_SM), "its SMs")) return false;
  unsigned count = 0;
  if (!gives(driver_->split(nullptr, &count, &all, nullptr, 0, smallest), "groups of SMs")) return false;
  const SmSplit split = split_multiprocessors(ranks, shares, static_cast<int>(count));
  refused_ = split.refused;
  if (!refused_.empty()) return false;
  std::vector<CUdevResource> groups(count);
  if (!gives(driver_->split(groups.data(), &count, &all, nullptr, 0, smallest), "groups of SMs")) return false;
  CUdevResource* next = groups.data();
  for (const int own : split.groups) {
    unsigned multiprocessors = 0;
    for (int i = 0; i < own; ++i) multiprocessors += next[i].sm.smCount;
    CUdevResourceDesc description = nullptr;
    CUgreenCtx context = nullptr;
    if (!gives(driver_->describe(&description, next, static_cast<unsigned>(own)), "a part of its SMs") ||
        !gives(driver_->create(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM), "a green context"))
      return false;
    contexts_.push_back(context);
    multiprocessors_.push_back(static_cast<int>(multiprocessors));
    next += own;
  }
  return true;
}

cudaStream_t GreenContexts::make_stream(int rank, int priority) const {
  CUstream stream = nullptr;
  const CUresult result =
      driver_->create_stream(&stream, contexts_[static_cast<std::size_t>(rank)], CU_STREAM_NON_BLOCKING, priority);
  if (result != CUDA_SUCCESS)
    throw RunError(fmt::format("a stream of a green context: the driver's error {}", static_cast<int>(result)));
  return stream;
}

}}}  // namespace plumb::executor::cuda
