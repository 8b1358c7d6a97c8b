#pragma once
// A communicator that does not block: made, and waited for, by asking again until a time is over, and aborted where it
// fails, so that no rank hangs in a call of NCCL.

#include <functional>
#include <string>

#include "executor/nccl/nccl_port.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// How long a rank waits for the others.
struct NcclPatience {
  Seconds timeout{60};                 ///< without anything moving, after which all is aborted
  std::function<void()> stop_if_told;  ///< asked between questions: throws if another rank has failed; may be empty
};

class NcclCommunicatorHandle {
 public:
  /// Member `rank` of `ranks`, all of which do this with the same id. Throws RunError with `name` if NCCL fails or the
  /// time is over. The port outlives it.
  NcclCommunicatorHandle(NcclPort& port, const NcclId& id, int rank, int ranks, std::string name,
                         NcclPatience patience);

  /// Aborts it unless finish() came before.
  ~NcclCommunicatorHandle();
  NcclCommunicatorHandle(const NcclCommunicatorHandle&) = delete;
  NcclCommunicatorHandle& operator=(const NcclCommunicatorHandle&) = delete;

  NcclPort::Communicator get() const { return communicator_; }
  const std::string& name() const { return name_; }

  /// Throws RunError if something has gone wrong in what was launched; true if nothing is being launched any more.
  bool poll(const std::string& during) const;

  /// poll() until all is launched, or the timeout.
  void settle(const std::string& during) const;

  /// Flushes and destroys it; all members do.
  void finish();

 private:
  NcclPort& port_;
  const std::string name_;
  const NcclPatience patience_;
  NcclPort::Communicator communicator_ = nullptr;
};

}}  // namespace plumb::executor
