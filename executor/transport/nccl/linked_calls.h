#pragma once
// The part of a DeviceMachine, besides its kernels, that makes it one rank of several: communicators, the calls of NCCL
// on its streams, and the watch over a replay. Its owner enqueues the calls, and asks it to wait for their end.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "executor/groups/device_exchange.h"
#include "executor/transport/nccl/call_watch.h"
#include "executor/transport/nccl/joined_communicators.h"
#include "executor/transport/nccl/nccl_collective.h"
#include "executor/transport/nccl/nccl_port.h"
#include "executor/transport/nccl/rank_board.h"

namespace plumb { inline namespace executor {

class LinkedCalls {
 public:
  using HasEnded = std::function<bool(std::size_t call)>;

  /// `stored` is the format of activations. The port and the board outlive it.
  LinkedCalls(NcclPort& port, RankBoard& board, NcclElement stored, Seconds timeout);

  /// Implements DeviceMachine::join(). Throws RunError that names the communicator that was not made.
  void join(const DeviceGroups& groups);

  // The functions below implement a replay of DeviceMachine. If something fails, they throw RunError with rank, call,
  // peer, communicator and the last call that the rank has completed; before that they tell the board and then abort
  // all communicators. They throw RunAborted if another rank has failed first. `has_ended` says if an enqueued call has
  // ended; it may throw RunError if something has failed on the device.
  void begin_call(int stream, const char* name);
  void wait_for(std::size_t earlier) { watch_.wait_for(earlier); }
  /// Returns when the exchange is launched, so that an event that is recorded next is behind it. In a group,
  /// end_group() launches it. The exchange outlives the group.
  void exchange(const DeviceExchange& exchange, NcclPort::Stream stream, const HasEnded& has_ended);
  void begin_group() { in_group_ = true; }
  void end_group(const HasEnded& has_ended);
  /// Watches the calls until `is_over` returns true.
  void wait_until(const std::function<bool()>& is_over, const HasEnded& has_ended);
  /// Returns when all calls have ended, and forgets them.
  void finish(const HasEnded& has_ended);

  /// Ends the calls under way on the device. The owner of the streams calls it before it waits for them.
  void abort() { communicators_.abort(); }

  /// Returns [replay] the time on CLOCK_MONOTONIC at which the first call was enqueued.
  const std::vector<std::int64_t>& starts_ns() const { return starts_ns_; }

  /// Returns the text of a fault of the call that has begun on the device, after it has told the board.
  std::string text_of_fault(const std::string& reason);

  /// Flushes the communicators after the last replay, on all ranks; otherwise they are aborted.
  void leave();

 private:
  struct Enqueued {
    const DeviceExchange* exchange = nullptr;
    NcclPort::Stream stream = nullptr;
  };

  NcclCall call_of(const DeviceExchange& exchange) const;
  void make(const Enqueued& one);
  /// Launches the calls that have begun last, as a group if there are several.
  void launch(const std::vector<Enqueued>& together, const HasEnded& has_ended);
  void look_again(const HasEnded& has_ended, std::size_t enqueued);
  std::string told(const std::string& calls, const std::string& reason);
  [[noreturn]] void fail(const std::string& calls, const std::string& reason);

  NcclPort& port_;
  RankBoard& board_;
  const NcclElement stored_;
  const NcclPatience patience_;
  DeviceGroups groups_;
  JoinedCommunicators communicators_;
  CallWatch watch_;
  bool in_group_ = false;
  std::vector<Enqueued> group_;
  std::vector<std::int64_t> starts_ns_;
};

}}  // namespace plumb::executor
