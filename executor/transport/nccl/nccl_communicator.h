#pragma once
// A communicator that does not block. It is made, and waited for, by asking again until the time is over, and it is
// aborted if it fails, so that no rank hangs in a call of NCCL.

#include <functional>
#include <span>
#include <string>
#include <utility>

#include "executor/transport/nccl/nccl_port.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// The limits of a rank's wait for the others.
struct NcclPatience {
  Seconds timeout{60};                 ///< time without progress after which all is aborted
  std::function<void()> stop_if_told;  ///< called between questions; throws if another rank has failed; may be empty
};

class NcclCommunicatorHandle {
 public:
  /// Joins as member `rank` of `ranks`, all of which do this with the same id. Throws RunError with `name` if NCCL
  /// fails or the time is over. The port outlives it.
  NcclCommunicatorHandle(NcclPort& port, const NcclId& id, int rank, int ranks, const NcclConfig& config,
                         std::string name, NcclPatience patience);

  /// Aborts the communicator unless finish() or release() came before.
  ~NcclCommunicatorHandle();
  NcclCommunicatorHandle(const NcclCommunicatorHandle&) = delete;
  NcclCommunicatorHandle& operator=(const NcclCommunicatorHandle&) = delete;

  NcclPort::Communicator get() const { return communicator_; }
  /// Gives the communicator to the caller, who aborts it.
  NcclPort::Communicator release() { return std::exchange(communicator_, nullptr); }
  const std::string& name() const { return name_; }

  /// Returns true if nothing is being launched any more. Throws RunError if something that was launched has failed.
  bool poll(const std::string& during) const;

  /// Calls poll() until all is launched. Throws RunError if the time is over.
  void settle(const std::string& during) const;

  /// Flushes and destroys the communicator; all members must call it.
  void finish();

 private:
  void abort() noexcept;

  NcclPort& port_;
  const std::string name_;
  const NcclPatience patience_;
  NcclPort::Communicator communicator_ = nullptr;
};

}}  // namespace plumb::executor
