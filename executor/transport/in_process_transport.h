#pragma once
// The transport between threads of one process: a message is a copy from one rank's memory into another's.
//
// Buffered sends copy at once, into the receive's tensor if it is posted and into a buffer of the transport otherwise.
// Rendezvous sends wait for their receive, and the end that comes second copies. The sum of a message's words is taken
// when it is sent and again from the values that have arrived. In collectives the receiver copies, or adds, straight
// from the sender's memory.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "executor/transport/clock.h"
#include "executor/transport/transport.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// For tests: called on the sender's thread with a message that leaves, after its sum has been taken. It may change the
/// values, wait, or throw (RunAborted: the thread ends without a word), like a faulty machine.
using InTransit = std::function<void(const TransportChannel& channel, const MessageTag& tag, std::span<float> values)>;

struct InProcessOptions {
  int ranks = 1;
  Sends sends = Sends::kBuffered;
  Seconds watchdog{60};  ///< a wait during which nothing moves on any rank for this long is an error
  /// [rank] Memory in which copy_to makes its copies; must outlive the transport. May be empty if copy_to is not used.
  std::vector<TensorPool*> pools;
  InTransit in_transit;  ///< empty: messages arrive as they were sent
};

class InProcessTransport : public Transport {
 public:
  InProcessTransport(const InProcessOptions& options, Clock clock);

  TicketPtr send(const TransportChannel& channel, const MessageTag& tag, Tensor payload) override;
  TicketPtr receive(const TransportChannel& channel, const MessageTag& tag, Tensor destination) override;
  Received wait_received(const TicketPtr& receive) override;
  TransferTimes wait_sent(const TicketPtr& send) override;
  std::unique_ptr<PointToPoint> connect(const CommunicatorGroup& group, int member) override;
  Tensor copy_to(int rank, const Tensor& tensor) override;
  void abort(const std::string& reason) override;

 private:
  struct Message;
  struct Switchboard;
  class Lines;
  struct Queue {
    std::deque<std::shared_ptr<Message>> sends;     // posted before their receive
    std::deque<std::shared_ptr<Message>> receives;  // posted before their send
  };

  void deliver(Message& send, Message& receive);
  template <class Done, class What>
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& wake, Done done, What what);
  void require_running() const;

  const InProcessOptions options_;
  const Clock clock_;
  TensorPool buffers_;
  std::mutex mutex_;                          // guards messages; each group of a collective has a mutex of its own
  std::deque<std::condition_variable> wake_;  // [rank]
  std::map<TransportChannel, Queue> queues_;
  std::map<CommunicatorGroup, std::shared_ptr<Switchboard>> switchboards_;
  std::atomic<std::int64_t> moves_ = 0;  // counts everything that happens, for the watchdog
  std::atomic<bool> is_aborted_ = false;
  std::string reason_;  // reason of the abort; not written any more once is_aborted_
};

}}  // namespace plumb::executor
