#pragma once
// Messages and collectives between processes by MPI.
//
// All calls of MPI take turns (MPI_THREAD_SERIALIZED). A thread of the transport drives the operations under way. It
// polls them and sleeps a little when nothing has moved, so that ranks that share cores do not take them from each
// other by spinning. Every message is preceded by a header with its kind, its length and the sum of its words; both
// ends must agree.

#include <cstdint>
#include <memory>
#include <string>

#include "executor/transport/clock.h"
#include "executor/transport/transport.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

struct MpiOptions {
  Sends sends = Sends::kBuffered;  ///< rendezvous: a send is over when its receive has begun (MPI_Issend)
  Seconds watchdog{60};            ///< a wait during which nothing moves on this rank for this long is an error
};

class MpiTransport : public Transport {
 public:
  /// Called by all ranks of MPI_COMM_WORLD, between MPI_Init and MPI_Finalize. World ranks are MPI's.
  MpiTransport(const MpiOptions& options, Clock clock);
  ~MpiTransport() override;

  TicketPtr send(const TransportChannel& channel, const MessageTag& tag, Tensor payload) override;
  TicketPtr receive(const TransportChannel& channel, const MessageTag& tag, Tensor destination) override;
  Received wait_received(const TicketPtr& receive) override;

  /// Ends when the message has left this process, which may be before it is delivered.
  TransferTimes wait_sent(const TicketPtr& send) override;

  std::unique_ptr<PointToPoint> connect(const CommunicatorGroup& group, int member) override;

  /// Throws RunError, since another process's memory cannot be written without its help.
  Tensor copy_to(int rank, const Tensor& tensor) override;

  /// Wakes the waits of this process only.
  void abort(const std::string& reason) override;

 private:
  struct Operation;
  class Engine;
  class Lines;

  const MpiOptions options_;
  const std::unique_ptr<Engine> engine_;
};

}}  // namespace plumb::executor
