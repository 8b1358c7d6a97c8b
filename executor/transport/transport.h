#pragma once
// The exchange of tensors between ranks. Ranks are world ranks. Only the waits block.
//
// A message channel is (source, destination, activation or gradient). It is first in, first out, with one sender and
// one receiver. Collectives are made of moves between two members of a group (communicator.h).

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/transport/point_to_point.h"
#include "executor/transport/tensor_pool.h"
#include "schedules/error.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// Thrown when a run fails. The text names the rank, its action and the reason.
class RunError : public InputError {
 public:
  using InputError::InputError;
};

/// Thrown when another rank failed first. This rank was woken up to stop, and has nothing to report.
class RunAborted : public RunError {
 public:
  using RunError::RunError;
};

enum class MessageKind : std::uint8_t { kActivation, kGradient };

struct TransportChannel {
  int source = 0;
  int destination = 0;
  MessageKind kind = MessageKind::kActivation;

  friend auto operator<=>(const TransportChannel&,
                          const TransportChannel&) = default;  // NOLINT(modernize-use-nullptr): false alarm
};

/// The identity of a message; both ends must give the same.
struct MessageTag {
  int stage = 0;  ///< stage that produced it
  int microbatch = 0;
  int slice = 0;

  friend bool operator==(const MessageTag&, const MessageTag&) = default;
};

/// Returns text like "activation of stage 1, micro-batch 3, from rank 0 to rank 1".
std::string to_text(const TransportChannel& channel, const MessageTag& tag);

/// A transfer under way.
class Ticket {
 public:
  virtual ~Ticket() = default;
};
using TicketPtr = std::shared_ptr<Ticket>;

/// The times at which a transfer started and ended, on the transport's clock.
struct TransferTimes {
  SimTime start{0};
  SimTime end{0};
};

struct Received {
  Tensor tensor;
  TransferTimes times;
};

class Transport {
 public:
  virtual ~Transport() = default;

  /// Posts a message; the payload is the transport's until it has moved.
  virtual TicketPtr send(const TransportChannel& channel, const MessageTag& tag, Tensor payload) = 0;

  /// Posts a receive into `destination`, which has the message's size.
  virtual TicketPtr receive(const TransportChannel& channel, const MessageTag& tag, Tensor destination) = 0;

  /// Waits for the message and hands out its tensor. To be called once for each receive.
  virtual Received wait_received(const TicketPtr& receive) = 0;

  /// Waits until the message has left.
  virtual TransferTimes wait_sent(const TicketPtr& send) = 0;

  /// Returns the connections of a group's member to the others; they must be gone before the transport. To be called
  /// once for each member: a second group of the same ranks takes another name.
  virtual std::unique_ptr<PointToPoint> connect(const CommunicatorGroup& group, int member) = 0;

  /// Returns a copy of a tensor in the memory of `rank`, which takes no part in it (BPipe's partner). The copy is
  /// complete when this returns.
  virtual Tensor copy_to(int rank, const Tensor& tensor) = 0;

  /// Wakes every rank that waits, now or later, with RunAborted. Only the first reason counts.
  virtual void abort(const std::string& reason) = 0;

  // Waits throw RunAborted after abort(), and RunError if both ends of a channel disagree or if nothing has moved
  // anywhere for the watchdog's time.
};

}}  // namespace plumb::executor
