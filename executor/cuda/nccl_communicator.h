#pragma once
// A communicator that does not block: made, and waited for, by asking again until a time is over, and aborted where it
// fails, so that no rank hangs in a call of NCCL.

#include <string>

#include "executor/cuda/nccl_functions.h"
#include "schedules/time.h"

namespace plumb::cuda {

class NcclCommunicatorHandle {
 public:
  /// Member `rank` of `ranks`, all of which do this with the same id. Throws RunError with `name` if NCCL fails or
  /// `timeout` goes by.
  NcclCommunicatorHandle(const ncclUniqueId& id, int rank, int ranks, std::string name, Seconds timeout);

  /// Aborts it unless finish() came before.
  ~NcclCommunicatorHandle();
  NcclCommunicatorHandle(const NcclCommunicatorHandle&) = delete;
  NcclCommunicatorHandle& operator=(const NcclCommunicatorHandle&) = delete;

  ncclComm_t get() const { return comm_; }
  const std::string& name() const { return name_; }

  /// Throws RunError if something has gone wrong in what was launched; true if nothing is being launched any more.
  bool poll(const std::string& during) const;

  /// poll() until all is launched, or the timeout.
  void settle(const std::string& during) const;

  /// Flushes and destroys it; all members do.
  void finish();

 private:
  const std::string name_;
  const Seconds timeout_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace plumb::cuda
