#pragma once
// NCCL, opened at run time: the library loads without it, and throws when NCCL is asked for.

#include <string>

#include <nccl.h>

namespace plumb { inline namespace executor { namespace cuda {

struct NcclFunctions {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) comm_init_rank;
  decltype(&ncclCommGetAsyncError) comm_get_async_error;
  decltype(&ncclCommFinalize) comm_finalize;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclReduce) reduce;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllReduce) all_reduce;
};

/// Opens NCCL on the first call. Throws RunError if there is no libnccl.so.2, or one older than 2.18, which does not
/// have such non-blocking communicators.
const NcclFunctions& nccl();

/// Returns the version of NCCL, e.g. "2.28.9".
std::string nccl_version();

/// Throws RunError "<what>: <NCCL's words>" if the call failed; ncclInProgress is no failure.
void check(ncclResult_t result, const std::string& what);

}}}  // namespace plumb::executor::cuda
