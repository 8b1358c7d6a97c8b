#pragma once
// How ranks exchange tensors. Ranks are world ranks. Nothing blocks but the waits.
//
// A message channel is (source, destination, activation or gradient), first in first out, with one sender and one
// receiver. A sum adds the same number of values of each member of a group, in the order of the group's list, whoever
// comes first: the result does not depend on timing.

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/tensor_pool.h"
#include "schedules/error.h"
#include "schedules/time.h"

namespace plumb {

/// A run failed: the text names the rank, its action and the reason.
class RunError : public InputError {
 public:
  using InputError::InputError;
};

/// Another rank failed first: this one was woken up to stop, and has nothing to report.
class RunAborted : public RunError {
 public:
  using RunError::RunError;
};

enum class MessageKind : std::uint8_t { kActivation, kGradient };

struct Channel {
  int source = 0;
  int destination = 0;
  MessageKind kind = MessageKind::kActivation;

  friend auto operator<=>(const Channel&, const Channel&) = default;  // NOLINT(modernize-use-nullptr): false alarm
};

/// What a message is; both ends must say the same.
struct MessageTag {
  int stage = 0;  ///< that produced it
  int microbatch = 0;
  int slice = 0;

  friend bool operator==(const MessageTag&, const MessageTag&) = default;
};

/// "activation of stage 1, micro-batch 3, from rank 0 to rank 1".
std::string to_text(const Channel& channel, const MessageTag& tag);

/// Ranks that sum something together. Their k-th sums with the same id belong together.
struct SumGroup {
  std::int64_t id = 0;
  std::vector<int> ranks;  ///< in the order in which values are added
};

/// A transfer or a sum under way.
class Ticket {
 public:
  virtual ~Ticket() = default;
};
using TicketPtr = std::shared_ptr<Ticket>;

/// When it moved, on the transport's clock.
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
  virtual TicketPtr send(const Channel& channel, const MessageTag& tag, Tensor payload) = 0;

  /// Posts a receive into `destination`, which has the message's size.
  virtual TicketPtr receive(const Channel& channel, const MessageTag& tag, Tensor destination) = 0;

  /// Waits for the message and hands out its tensor. Once for each receive.
  virtual Received wait_received(const TicketPtr& receive) = 0;

  /// Waits until the message has left.
  virtual TransferTimes wait_sent(const TicketPtr& send) = 0;

  /// Adds `values` of the group's ranks into the values of each. They must stay where they are, untouched, until waited
  /// for.
  virtual TicketPtr sum(const SumGroup& group, int rank, std::span<float> values) = 0;
  virtual TransferTimes wait_sum(const TicketPtr& sum) = 0;

  /// A copy of a tensor in the memory of `rank`, which takes no part in it (BPipe's partner): made when this returns.
  virtual Tensor copy_to(int rank, const Tensor& tensor) = 0;

  /// Wakes every rank that waits, now or later, with RunAborted. The first reason stays.
  virtual void abort(const std::string& reason) = 0;

  // Waits throw RunAborted after abort(), and RunError where both ends of a channel or the members of a group disagree,
  // or where nothing has moved anywhere for the watchdog's time.
};

}  // namespace plumb
