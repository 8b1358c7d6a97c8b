// The driver's green contexts, as "CUDA Driver API, Green Contexts" describes them: SMs come in groups of the fewest
// that the device allows, a description has groups of one split, and contexts have SMs of their own.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "tests/executor/machines/cuda/played/state.h"

struct CUdevResourceDesc_st {
  std::vector<int> groups;
  int multiprocessors = 0;
  int split = 0;
};
struct CUgreenCtx_st {
  CUdevResourceDesc_st has;
  int device = 0;
};

using namespace plumb::test::played;

namespace {

struct GreenState {
  int splits = 0;
  std::vector<std::unique_ptr<CUdevResourceDesc_st>> descriptions;
  std::vector<std::unique_ptr<CUgreenCtx_st>> contexts;
};

GreenState& green() {
  static GreenState state;
  return state;
}

constexpr const char* kOpenContexts = "green contexts";

/// The group and its split, in the part of a resource that belongs to the driver.
struct Mark {
  int split = 0, group = 0;
};

Mark mark_of(const CUdevResource& resource) {
  Mark mark;
  std::memcpy(&mark, resource._internal_padding, sizeof mark);
  return mark;
}

CUresult CUDAAPI resource_of(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  const Call call("cuDeviceGetDevResource");
  if (device < 0 || device >= call->options.devices || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  *resource = {};
  resource->type = type;
  resource->sm.smCount = static_cast<unsigned>(call->options.multiprocessors);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI split(CUdevResource* result, unsigned* count, const CUdevResource* input, CUdevResource* remaining,
                       unsigned flags, unsigned fewest) {
  const Call call("cuDevSmResourceSplitByCount");
  if (!call->options.gives_green_contexts) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  if (input->type != CU_DEV_RESOURCE_TYPE_SM || flags != 0 || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const unsigned step = call->options.major >= 9 ? 8 : 4;
  const unsigned each = std::max(step, (fewest + step - 1) / step * step), most = input->sm.smCount / each;
  if (result == nullptr) {
    *count = most;
    return CUDA_SUCCESS;
  }
  *count = std::min(*count, most);
  const int number = ++green().splits;
  for (unsigned i = 0; i < *count; ++i) {
    result[i] = {};
    result[i].type = CU_DEV_RESOURCE_TYPE_SM;
    result[i].sm.smCount = each;
    const Mark mark{.split = number, .group = static_cast<int>(i)};
    std::memcpy(result[i]._internal_padding, &mark, sizeof mark);
  }
  if (remaining != nullptr) {
    *remaining = *input;
    remaining->sm.smCount -= *count * each;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI describe(CUdevResourceDesc* description, CUdevResource* resources, unsigned count) {
  const Call call("cuDevResourceGenerateDesc");
  auto made = std::make_unique<CUdevResourceDesc_st>();
  if (count == 0) {
    call.fault(cudaErrorInvalidValue, "of no resources");
    return CUDA_ERROR_INVALID_VALUE;
  }
  made->split = mark_of(resources[0]).split;
  for (unsigned i = 0; i < count; ++i) {
    const Mark mark = mark_of(resources[i]);
    if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM || mark.split == 0 || mark.split != made->split) {
      call.fault(cudaErrorInvalidValue, "resources of more than one split, or of none");
      return CUDA_ERROR_INVALID_VALUE;
    }
    made->groups.push_back(mark.group);
    made->multiprocessors += static_cast<int>(resources[i].sm.smCount);
  }
  *description = green().descriptions.emplace_back(std::move(made)).get();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI create(CUgreenCtx* context, CUdevResourceDesc description, CUdevice device, unsigned flags) {
  const Call call("cuGreenCtxCreate");
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) {
    call.fault(cudaErrorInvalidValue, "needs CU_GREEN_CTX_DEFAULT_STREAM");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (refused(call) != cudaSuccess) return CUDA_ERROR_OUT_OF_MEMORY;
  for (const auto& other : green().contexts)
    for (const int group : other->has.groups)
      if (other->has.split == description->split &&
          std::ranges::find(description->groups, group) != description->groups.end())
        call.fault(cudaErrorInvalidValue, "two contexts have the same SMs");
  *context = green().contexts.emplace_back(std::make_unique<CUgreenCtx_st>()).get();
  (*context)->has = *description;
  (*context)->device = device;
  ++call->open[kOpenContexts];
  return CUDA_SUCCESS;
}

bool context_exists(const Call& call, CUgreenCtx context) {
  for (const auto& one : green().contexts)
    if (one.get() == context) return true;
  call.fault(cudaErrorInvalidValue, "no such context, or one that was destroyed");
  return false;
}

CUresult CUDAAPI destroy_context(CUgreenCtx context) {
  const Call call("cuGreenCtxDestroy");
  if (!context_exists(call, context)) return CUDA_ERROR_INVALID_CONTEXT;
  std::erase_if(green().contexts, [&](const auto& one) { return one.get() == context; });
  --call->open[kOpenContexts];
  return CUDA_SUCCESS;
}

CUresult CUDAAPI create_stream(CUstream* stream, CUgreenCtx context, unsigned flags, int priority) {
  const Call call("cuGreenCtxStreamCreate");
  if (!context_exists(call, context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != CU_STREAM_NON_BLOCKING) {
    call.fault(cudaErrorInvalidValue, "needs CU_STREAM_NON_BLOCKING");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (refused(call) != cudaSuccess) return CUDA_ERROR_OUT_OF_MEMORY;
  *stream = call->make_stream(context->device, context->has.multiprocessors, priority);
  return CUDA_SUCCESS;
}

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  const Call call("cudaGetDriverEntryPointByVersion");
  struct Entry {
    std::string_view name;
    unsigned since;
    void* function;
  };
  const Entry entries[] = {{"cuDeviceGetDevResource", 12040, reinterpret_cast<void*>(resource_of)},
                           {"cuDevSmResourceSplitByCount", 12040, reinterpret_cast<void*>(split)},
                           {"cuDevResourceGenerateDesc", 12040, reinterpret_cast<void*>(describe)},
                           {"cuGreenCtxCreate", 12040, reinterpret_cast<void*>(create)},
                           {"cuGreenCtxDestroy", 12040, reinterpret_cast<void*>(destroy_context)},
                           {"cuGreenCtxStreamCreate", 12050, reinterpret_cast<void*>(create_stream)}};
  *function = nullptr;
  *found = cudaDriverEntryPointSymbolNotFound;
  for (const Entry& entry : entries)
    if (entry.name == name && call->options.knows_green_contexts) {
      *found = version < entry.since ? cudaDriverEntryPointVersionNotSufficent : cudaDriverEntryPointSuccess;
      if (version >= entry.since) *function = entry.function;
    }
  return cudaSuccess;
}
