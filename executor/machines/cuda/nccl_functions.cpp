#include "executor/machines/cuda/nccl_functions.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include "executor/transport/transport.h"

namespace plumb { inline namespace executor { namespace cuda {
namespace {

constexpr int kOldest = 21800;  // 2.18: NCCL_VERSION(2, 18, 0)

NcclFunctions open() {
  void* handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw RunError("there is no libnccl.so.2 here: install NCCL, or name its folder in LD_LIBRARY_PATH");
  NcclFunctions found{};
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr) throw RunError(fmt::format("libnccl.so.2 has no {}: install NCCL 2.18 or newer", name));
  };
  find(found.get_version, "ncclGetVersion");
  find(found.get_unique_id, "ncclGetUniqueId");
  find(found.comm_init_rank, "ncclCommInitRankConfig");
  find(found.comm_get_async_error, "ncclCommGetAsyncError");
  find(found.comm_finalize, "ncclCommFinalize");
  find(found.comm_destroy, "ncclCommDestroy");
  find(found.comm_abort, "ncclCommAbort");
  find(found.get_error_string, "ncclGetErrorString");
  find(found.get_last_error, "ncclGetLastError");
  find(found.group_start, "ncclGroupStart");
  find(found.group_end, "ncclGroupEnd");
  find(found.send, "ncclSend");
  find(found.receive, "ncclRecv");
  find(found.broadcast, "ncclBroadcast");
  find(found.reduce, "ncclReduce");
  find(found.all_gather, "ncclAllGather");
  find(found.reduce_scatter, "ncclReduceScatter");
  find(found.all_reduce, "ncclAllReduce");
  int version = 0;
  found.get_version(&version);
  if (version < kOldest)
    throw RunError(fmt::format("libnccl.so.2 is of version {}: install NCCL 2.18 or newer", version));
  return found;
}

}  // namespace

const NcclFunctions& nccl() {
  static const NcclFunctions kFunctions = open();
  return kFunctions;
}

std::string nccl_version() {
  int version = 0;
  nccl().get_version(&version);
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

void check(ncclResult_t result, const std::string& what) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* more = nccl().get_last_error(nullptr);
  throw RunError(fmt::format("{}: {}{}{}", what, nccl().get_error_string(result),
                             more == nullptr || *more == '\0' ? "" : ": ", more == nullptr ? "" : more));
}

}}}  // namespace plumb::executor::cuda
