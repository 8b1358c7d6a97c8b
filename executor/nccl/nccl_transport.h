#pragma once
// Carries out one rank's list of NCCL calls (nccl_order.h): its communicators, a stream for each, events where calls of
// different streams wait for each other, and a watch over what is under way.
//
//   NcclTransport transport(port, order, rank, ids, {.timeout = Seconds{60}});
//   transport.run(enqueue_compute, place_of);    // enqueues a replay, and waits for its end
//
// The ranks compare fingerprint(order) before they make a transport, and move the ids (rank_meeting.h).

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "executor/nccl/call_watch.h"
#include "executor/nccl/nccl_collective.h"
#include "executor/nccl/nccl_communicator.h"
#include "executor/nccl/nccl_order.h"
#include "executor/nccl/nccl_port.h"

namespace plumb { inline namespace executor {

class NcclTransport {
 public:
  using EnqueueCompute = std::function<void(const NcclCall& call, NcclPort::Stream stream)>;
  using PlaceOf = std::function<NcclPlaces(const NcclCall& call)>;

  /// Port and order outlive it. ids: [communicator] made by its first member.
  NcclTransport(NcclPort& port, const NcclOrder& order, int rank, const std::vector<NcclId>& ids,
                const NcclPatience& patience);
  ~NcclTransport();
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  /// Makes all calls in their order and waits until they are over, asking all communicators for errors. Throws RunError
  /// with rank, action, peer, communicator and the last that was completed, after all communicators have been aborted.
  void run(const EnqueueCompute& compute, const PlaceOf& place_of);

  /// After the last run, on all ranks: flushes the communicators.
  void finish();

 private:
  void enqueue(std::size_t index, const EnqueueCompute& compute, const PlaceOf& place_of);
  void wait_for_end();
  bool advance();
  void abort() { communicators_.clear(); }
  NcclPort::Stream stream_of(const NcclCall& call) { return streams_.at(call.stream); }

  NcclPort& port_;
  const NcclOrder& order_;
  const int rank_;
  const NcclRank& list_;
  const NcclPatience patience_;
  JoinedCommunicators communicators_;
  std::map<std::int32_t, NcclPort::Stream> streams_;
  std::vector<NcclPort::Event> events_;  // [call] recorded behind it
  CallWatch watch_;
  std::size_t enqueued_ = 0;  // of the replay under way
};

}}  // namespace plumb::executor
