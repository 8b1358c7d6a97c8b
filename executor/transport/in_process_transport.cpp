#include "executor/transport/in_process_transport.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "executor/transport/word_sum.h"

namespace plumb { inline namespace executor {

std::string to_text(const TransportChannel& channel, const MessageTag& tag) {
  return fmt::format("{} of stage {}, micro-batch {}{}, from rank {} to rank {}",
                     channel.kind == MessageKind::kActivation ? "activation" : "gradient", tag.stage, tag.microbatch,
                     tag.slice > 0 ? fmt::format(", slice {}", tag.slice) : "", channel.source, channel.destination);
}

/// One end of a message: a send with its payload, or a receive with its destination.
struct InProcessTransport::Message : Ticket {
  TransportChannel channel;
  MessageTag tag;
  Tensor tensor;
  std::uint64_t sum = 0;  // sum of the words that were sent
  TransferTimes times;
  bool done = false;
};

/// Returns when done() returns true. what() is the end of the error's sentence.
template <class Done, class What>
void InProcessTransport::wait(std::unique_lock<std::mutex>& lock, std::condition_variable& wake, Done done, What what) {
  while (!done()) {
    require_running();
    const std::int64_t moves = moves_;
    const bool woken = wake.wait_for(lock, options_.watchdog, [&] { return done() || is_aborted_; });
    if (!woken && moves_ == moves)
      throw RunError(fmt::format("nothing moved for {} s while {}", options_.watchdog.count(), what()));
  }
}

/// The values that the members of a group post for each other.
struct InProcessTransport::Switchboard {
  struct Post {
    std::span<const float> values;
    bool is_there = false;  // true from the posting until the receiver has taken it
  };

  explicit Switchboard(std::size_t members)
      : tags(members, MoveTag{.number = -1}), waits_for(members, -1), posts(members * members), wake(members) {}

  std::mutex mutex;
  std::vector<MoveTag> tags;                 // [member] the collective it is at
  std::vector<int> waits_for;                // [member] the member for whose move it waits; -1: none
  std::vector<Post> posts;                   // [sender, receiver]
  std::deque<std::condition_variable> wake;  // [member]
};

class InProcessTransport::Lines : public PointToPoint {
 public:
  Lines(InProcessTransport& transport, CommunicatorGroup group, int member, std::shared_ptr<Switchboard> board)
      : transport_(transport), group_(std::move(group)), member_(member), board_(std::move(board)) {}

  void move(const MoveTag& tag, const Move& move) override {
    std::unique_lock lock(board_->mutex);
    transport_.require_running();
    announce(tag);
    if (move.send_to >= 0) {
      post(member_, move.send_to) = {move.outgoing, true};
      ++transport_.moves_;
      wake_waiting(lock, move.send_to);
    }
    if (move.receive_from >= 0) take(lock, move);
    if (move.send_to >= 0) wait_for(lock, move.send_to, [&] { return !post(member_, move.send_to).is_there; });
  }

 private:
  /// Announces this member's collective: a member that waits for this one sees at once if the two are at different
  /// ones.
  void announce(const MoveTag& tag) {
    if (tag_of(member_) == tag) return;
    tag_of(member_) = tag;
    for (int other = 0; other < static_cast<int>(board_->wake.size()); ++other)
      if (disagrees(other, member_)) wake(other).notify_all();
  }

  /// Wakes only a member that waits for this one, and without the lock. A thread that is woken in vain, or while the
  /// lock is held, costs more than most moves do.
  void wake_waiting(std::unique_lock<std::mutex>& lock, int other) {
    if (board_->waits_for[static_cast<std::size_t>(other)] != member_) return;
    lock.unlock();
    wake(other).notify_all();
    lock.lock();
  }

  /// Returns true if two members are at different collectives. A member that is still awaited in a collective has not
  /// left it, so another tag of the same number, or a later one, is an error.
  bool disagrees(int waiting, int awaited) const {
    return tag_of(awaited).number >= tag_of(waiting).number && tag_of(awaited) != tag_of(waiting);
  }
  bool disagrees(int other) const { return disagrees(member_, other); }

  template <class Done>
  void wait_for(std::unique_lock<std::mutex>& lock, int other, Done done) {
    board_->waits_for[static_cast<std::size_t>(member_)] = other;
    transport_.wait(
        lock, wake(member_), [&] { return done() || disagrees(other); },
        [&] {
          return fmt::format("rank {} waited for rank {} in collective {} of the {}, {}", rank(member_), rank(other),
                             tag_of(member_).number, to_text(group_), to_text(tag_of(member_)));
        });
    board_->waits_for[static_cast<std::size_t>(member_)] = -1;
    if (disagrees(other) && !done())
      throw RunError(
          fmt::format("{}: rank {} is at collective {}, {}, and rank {} at collective {}, {}: the members' "
                      "lists disagree",
                      to_text(group_), rank(member_), tag_of(member_).number, to_text(tag_of(member_)), rank(other),
                      tag_of(other).number, to_text(tag_of(other))));
  }

  void take(std::unique_lock<std::mutex>& lock, const Move& move) {
    Switchboard::Post& incoming = post(move.receive_from, member_);
    wait_for(lock, move.receive_from, [&] { return incoming.is_there && !disagrees(move.receive_from); });
    if (incoming.values.size() != move.incoming.size())
      throw RunError(fmt::format("{}: in collective {}, {}, rank {} sends {} values and rank {} expects {}",
                                 to_text(group_), tag_of(member_).number, to_text(tag_of(member_)),
                                 rank(move.receive_from), incoming.values.size(), rank(member_), move.incoming.size()));
    lock.unlock();
    const float* from = incoming.values.data();
    float* to = move.incoming.data();
    const std::size_t count = move.incoming.size();
    if (move.add)
      for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
    else
      std::copy(from, from + count, to);
    lock.lock();
    incoming.is_there = false;
    ++transport_.moves_;
    wake_waiting(lock, move.receive_from);
  }

  Switchboard::Post& post(int sender, int receiver) {
    return board_->posts[static_cast<std::size_t>(sender) * board_->wake.size() + static_cast<std::size_t>(receiver)];
  }
  std::condition_variable& wake(int member) { return board_->wake[static_cast<std::size_t>(member)]; }
  int rank(int member) const { return group_.ranks[static_cast<std::size_t>(member)]; }
  MoveTag& tag_of(int member) { return board_->tags[static_cast<std::size_t>(member)]; }
  const MoveTag& tag_of(int member) const { return board_->tags[static_cast<std::size_t>(member)]; }

  InProcessTransport& transport_;
  const CommunicatorGroup group_;
  const int member_;
  const std::shared_ptr<Switchboard> board_;
};

InProcessTransport::InProcessTransport(const InProcessOptions& options, Clock clock)
    : options_(options), clock_(std::move(clock)), wake_(static_cast<std::size_t>(options.ranks)) {}

TicketPtr InProcessTransport::send(const TransportChannel& channel, const MessageTag& tag, Tensor payload) {
  auto message = std::make_shared<Message>();
  message->channel = channel;
  message->tag = tag;
  message->tensor = std::move(payload);
  message->times.start = clock_();
  message->sum = word_sum(message->tensor.values());
  if (options_.in_transit) options_.in_transit(channel, tag, message->tensor.values());

  std::unique_lock lock(mutex_);
  require_running();
  ++moves_;
  Queue& queue = queues_[channel];
  const bool buffers = queue.receives.empty() && options_.sends == Sends::kBuffered;
  if (buffers) {
    lock.unlock();
    message->tensor = buffers_.take_copy(message->tensor);
    lock.lock();
    require_running();
    message->times.end = clock_();
    message->done = true;
  }
  if (queue.receives.empty()) {
    queue.sends.push_back(message);
    return message;
  }
  const std::shared_ptr<Message> receive = std::move(queue.receives.front());
  queue.receives.pop_front();
  lock.unlock();
  deliver(*message, *receive);
  return message;
}

TicketPtr InProcessTransport::receive(const TransportChannel& channel, const MessageTag& tag, Tensor destination) {
  auto message = std::make_shared<Message>();
  message->channel = channel;
  message->tag = tag;
  message->tensor = std::move(destination);

  std::unique_lock lock(mutex_);
  require_running();
  ++moves_;
  Queue& queue = queues_[channel];
  if (queue.sends.empty()) {
    queue.receives.push_back(message);
    return message;
  }
  const std::shared_ptr<Message> send = std::move(queue.sends.front());
  queue.sends.pop_front();
  lock.unlock();
  deliver(*send, *message);
  return message;
}

/// Copies a message whose ends have met. Both are out of the queues, so no other thread touches their tensors until
/// they are done.
void InProcessTransport::deliver(Message& send, Message& receive) {
  if (send.tag != receive.tag)
    throw RunError(fmt::format("the {} was sent where the {} was expected: the two ranks' lists disagree",
                               to_text(send.channel, send.tag), to_text(receive.channel, receive.tag)));
  if (send.tensor.elements() != receive.tensor.elements())
    throw RunError(fmt::format("the {} has {} elements and its receiver expects {}", to_text(send.channel, send.tag),
                               send.tensor.elements(), receive.tensor.elements()));
  const SimTime start = clock_();
  std::ranges::copy(send.tensor.values(), receive.tensor.data());
  if (word_sum(receive.tensor.values()) != send.sum)
    throw RunError(changed_text("the " + to_text(send.channel, send.tag), receive.tensor.values().size()));
  send.tensor = {};
  const SimTime end = clock_();

  const std::lock_guard lock(mutex_);
  ++moves_;
  receive.times = {start, end};
  receive.done = true;
  if (!send.done) send.times = {start, end};
  send.done = true;
  wake_[static_cast<std::size_t>(send.channel.source)].notify_all();
  wake_[static_cast<std::size_t>(send.channel.destination)].notify_all();
}

Received InProcessTransport::wait_received(const TicketPtr& receive) {
  Message& message = static_cast<Message&>(*receive);
  std::unique_lock lock(mutex_);
  wait(
      lock, wake_[static_cast<std::size_t>(message.channel.destination)], [&] { return message.done; },
      [&] { return "it waited for the " + to_text(message.channel, message.tag); });
  return {std::move(message.tensor), message.times};
}

TransferTimes InProcessTransport::wait_sent(const TicketPtr& send) {
  Message& message = static_cast<Message&>(*send);
  std::unique_lock lock(mutex_);
  wait(
      lock, wake_[static_cast<std::size_t>(message.channel.source)], [&] { return message.done; },
      [&] { return "it waited for the receiver of the " + to_text(message.channel, message.tag); });
  return message.times;
}

std::unique_ptr<PointToPoint> InProcessTransport::connect(const CommunicatorGroup& group, int member) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Switchboard>& board = switchboards_[group];
  if (board == nullptr) board = std::make_shared<Switchboard>(group.ranks.size());
  return std::make_unique<Lines>(*this, group, member, board);
}

Tensor InProcessTransport::copy_to(int rank, const Tensor& tensor) {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= options_.pools.size())
    throw RunError(fmt::format("there is no memory of rank {} to copy to: give the transport the ranks' pools", rank));
  Tensor copy = options_.pools[index]->take_copy(tensor);
  const std::lock_guard lock(mutex_);
  require_running();
  ++moves_;
  return copy;
}

void InProcessTransport::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!is_aborted_) {
    reason_ = reason;
    is_aborted_ = true;
  }
  for (std::condition_variable& condition : wake_) condition.notify_all();
  for (const auto& [group, board] : switchboards_) {
    const std::lock_guard board_lock(board->mutex);
    for (std::condition_variable& condition : board->wake) condition.notify_all();
  }
}

void InProcessTransport::require_running() const {
  if (is_aborted_) throw RunAborted(reason_);
}

}}  // namespace plumb::executor
