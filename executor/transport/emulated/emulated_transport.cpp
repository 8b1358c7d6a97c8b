#include "executor/transport/emulated/emulated_transport.h"

#include <algorithm>
#include <utility>

namespace plumb { inline namespace executor {
namespace {

std::string channel_name(MessageKind kind) {
  return kind == MessageKind::kActivation ? "activation" : "gradient";
}

}  // namespace

/// The card by which messages leave, of one wire or of all wires of a rank.
struct EmulatedTransport::Card {
  std::mutex mutex;
  TokenBucket bucket;
};

/// One direction between two ranks: the moments at which messages were sent and receives were posted, in order, and the
/// moments at which each message has arrived.
class EmulatedTransport::Wire {
 public:
  Wire(const EmulatedLink& link, std::shared_ptr<Card> card, Sends sends)
      : link_(link), card_(std::move(card)), sends_(sends) {}

  std::size_t sent(SimTime ready, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    messages_.push_back({ready, bytes});
    move_what_is_ready();
    return messages_.size() - 1;
  }

  std::size_t posted(SimTime moment) {
    const std::lock_guard lock(mutex_);
    posted_.push_back(moment);
    move_what_is_ready();
    return posted_.size() - 1;
  }

  /// Returns the times of a message that was sent and whose receive was posted.
  TransferTimes times(std::size_t message) const {
    const std::lock_guard lock(mutex_);
    return times_.at(message);
  }

 private:
  struct Message {
    SimTime ready{0};
    std::int64_t bytes = 0;
  };

  void move_what_is_ready() {
    while (times_.size() < messages_.size()) {
      const Message& next = messages_[times_.size()];
      SimTime ready = next.ready;
      if (sends_ == Sends::kRendezvous) {
        if (times_.size() >= posted_.size()) return;
        ready = std::max(ready, posted_[times_.size()]);
      }
      const std::lock_guard lock(card_->mutex);
      times_.push_back(link_.send(card_->bucket, ready, next.bytes));
    }
  }

  mutable std::mutex mutex_;
  const EmulatedLink link_;
  const std::shared_ptr<Card> card_;
  const Sends sends_;
  std::vector<Message> messages_;
  std::vector<SimTime> posted_;
  std::vector<TransferTimes> times_;
};

/// One end of a message.
struct EmulatedTransport::End : Ticket {
  TicketPtr inner;
  Wire* wire = nullptr;
  std::size_t message = 0;
};

/// A member's connections, each over a wire of its own. A move is over when its incoming values have arrived over their
/// wire and its outgoing values have left by the inner transport.
class EmulatedTransport::Lines : public PointToPoint {
 public:
  Lines(EmulatedTransport& transport, CommunicatorGroup group, int member)
      : transport_(transport),
        group_(std::move(group)),
        name_(to_text(group_)),
        member_(member),
        inner_(transport.inner_.connect(group_, member)) {}

  void move(const MoveTag& tag, const Move& move) override {
    const auto bytes = [](auto values) { return static_cast<std::int64_t>(values.size_bytes()); };
    std::size_t incoming = 0;
    if (move.send_to >= 0) line(member_, move.send_to).sent(transport_.sleeper_.now(), bytes(move.outgoing));
    if (move.receive_from >= 0) incoming = line(move.receive_from, member_).posted(transport_.sleeper_.now());
    inner_->move(tag, move);
    if (move.receive_from >= 0) transport_.sleeper_.sleep_until(line(move.receive_from, member_).times(incoming).end);
  }

 private:
  Wire& line(int source, int destination) {
    return transport_.wire(name_, group_.ranks[static_cast<std::size_t>(source)],
                           group_.ranks[static_cast<std::size_t>(destination)]);
  }

  EmulatedTransport& transport_;
  const CommunicatorGroup group_;
  const std::string name_;
  const int member_;
  const std::unique_ptr<PointToPoint> inner_;
};

EmulatedTransport::EmulatedTransport(Transport& inner, EmulatedNetwork network, const Sleeper& sleeper)
    : inner_(inner), network_(std::move(network)), sleeper_(sleeper) {}

EmulatedTransport::~EmulatedTransport() = default;

EmulatedTransport::Wire& EmulatedTransport::wire(const std::string& name, int source, int destination) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Wire>& found = wires_[{name, {source, destination}}];
  if (found != nullptr) return *found;
  std::shared_ptr<Card> card;
  if (network_.burst_bytes > 0) card = cards_[source];
  if (card == nullptr) card = std::make_shared<Card>();
  if (network_.burst_bytes > 0) cards_[source] = card;
  const EmulatedLink link(network_.link(source, destination), network_.burst_bytes);
  found = std::make_unique<Wire>(link, std::move(card), network_.sends);
  return *found;
}

TicketPtr EmulatedTransport::send(const TransportChannel& channel, const MessageTag& tag, Tensor payload) {
  auto end = std::make_shared<End>();
  end->wire = &wire(channel_name(channel.kind), channel.source, channel.destination);
  end->message = end->wire->sent(sleeper_.now(), payload.elements() * static_cast<std::int64_t>(sizeof(float)));
  end->inner = inner_.send(channel, tag, std::move(payload));
  return end;
}

TicketPtr EmulatedTransport::receive(const TransportChannel& channel, const MessageTag& tag, Tensor destination) {
  auto end = std::make_shared<End>();
  end->wire = &wire(channel_name(channel.kind), channel.source, channel.destination);
  end->message = end->wire->posted(sleeper_.now());
  end->inner = inner_.receive(channel, tag, std::move(destination));
  return end;
}

Received EmulatedTransport::wait_received(const TicketPtr& receive) {
  const End& end = static_cast<const End&>(*receive);
  Received received = inner_.wait_received(end.inner);
  received.times = end.wire->times(end.message);
  sleeper_.sleep_until(received.times.end);
  return received;
}

TransferTimes EmulatedTransport::wait_sent(const TicketPtr& send) {
  const End& end = static_cast<const End&>(*send);
  inner_.wait_sent(end.inner);
  const TransferTimes times = end.wire->times(end.message);
  sleeper_.sleep_until(times.end);
  return times;
}

std::unique_ptr<PointToPoint> EmulatedTransport::connect(const CommunicatorGroup& group, int member) {
  return std::make_unique<Lines>(*this, group, member);
}

}}  // namespace plumb::executor
