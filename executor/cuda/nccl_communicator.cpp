#include "executor/cuda/nccl_communicator.h"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "executor/transport/transport.h"

namespace plumb::cuda {

NcclCommunicatorHandle::NcclCommunicatorHandle(const ncclUniqueId& id, int rank, int ranks, std::string name,
                                               Seconds timeout)
    : name_(std::move(name)), timeout_(timeout) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check(nccl().comm_init_rank(&comm_, ranks, id, rank, &config), name_);
  try {
    settle("its members meet");
  } catch (const RunError&) {
    nccl().comm_abort(comm_);
    throw;
  }
}

NcclCommunicatorHandle::~NcclCommunicatorHandle() {
  if (comm_ != nullptr) nccl().comm_abort(comm_);
}

bool NcclCommunicatorHandle::poll(const std::string& during) const {
  ncclResult_t state = ncclSuccess;
  check(nccl().comm_get_async_error(comm_, &state), fmt::format("{}, while {}", name_, during));
  check(state, fmt::format("{}, while {}", name_, during));
  return state == ncclSuccess;
}

void NcclCommunicatorHandle::settle(const std::string& during) const {
  const auto end = std::chrono::steady_clock::now() + timeout_;
  while (!poll(during)) {
    if (std::chrono::steady_clock::now() > end)
      throw RunError(fmt::format("{}: for {:.0f} s nothing has come of it, while {}", name_, timeout_.count(), during));
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void NcclCommunicatorHandle::finish() {
  check(nccl().comm_finalize(comm_), name_);
  settle("it is flushed");
  check(nccl().comm_destroy(std::exchange(comm_, nullptr)), name_);
}

}  // namespace plumb::cuda
