#pragma once
// What a DeviceMachine that is one rank of several needs besides its kernels: communicators, the calls of NCCL on its
// streams, and the watch over a replay. Its owner enqueues, and asks it to wait for the end.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/device_plan/device_exchange.h"
#include "executor/nccl/call_watch.h"
#include "executor/nccl/nccl_collective.h"
#include "executor/nccl/nccl_port.h"
#include "executor/nccl/rank_board.h"

namespace plumb { inline namespace executor {

class LinkedCalls {
 public:
  using HasEnded = std::function<bool(std::size_t call)>;

  /// Port and board outlive it. stored: how activations are stored.
  LinkedCalls(NcclPort& port, RankBoard& board, NcclElement stored, Seconds timeout);

  /// DeviceMachine::join(). Throws RunError with the communicator that did not come about.
  void join(const DeviceGroups& groups);

  // A replay, as DeviceMachine's. What fails throws RunError with rank, call, peer, communicator and the last call that
  // the rank has completed, after the board was told and then all communicators aborted; RunAborted if another rank has
  // failed first. has_ended: of the calls that are enqueued; may throw RunError for what has failed on the device.
  void begin_call(int stream, const char* name);
  void wait_for(std::size_t earlier) { watch_.wait_for(earlier); }
  /// Returns when it is launched, so that what is recorded next stands behind it; in a group it is end_group() that
  /// launches. The exchange outlives the group.
  void exchange(const DeviceExchange& exchange, NcclPort::Stream stream, const HasEnded& has_ended);
  void begin_group() { in_group_ = true; }
  void end_group(const HasEnded& has_ended);
  /// Returns when all calls have ended, and forgets them.
  void finish(const HasEnded& has_ended);

  /// Ends what is under way on the device: before who owns the streams waits for them.
  void abort() { communicators_.clear(); }

  /// [replay] CLOCK_MONOTONIC when its first call was enqueued.
  const std::vector<std::int64_t>& starts_ns() const { return starts_ns_; }

  /// What went wrong on the device by the call that has begun: told to the board before the text is returned.
  std::string text_of_fault(const std::string& reason);

  /// After the last replay, on all ranks: flushes the communicators, which otherwise are aborted.
  void leave();

 private:
  struct Enqueued {
    const DeviceExchange* exchange = nullptr;
    NcclPort::Stream stream = nullptr;
  };

  NcclCall call_of(const DeviceExchange& exchange) const;
  void make(const Enqueued& one);
  /// The calls that have begun last, all at once where there are several.
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
