#include "executor/in_process_transport.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace plumb {
namespace {

/// Every member's values become the sum of all, added in the members' order; in blocks that stay in the cache.
void add_up(const std::vector<std::span<float>>& values) {
  constexpr std::size_t kBlock = 4096;
  for (std::size_t first = 0; first < values[0].size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, values[0].size() - first);
    float* total = values[0].data() + first;
    for (std::size_t member = 1; member < values.size(); ++member) {
      const float* term = values[member].data() + first;
      for (std::size_t i = 0; i < count; ++i) total[i] += term[i];
    }
    for (std::size_t member = 1; member < values.size(); ++member)
      std::copy(total, total + count, values[member].data() + first);
  }
}

}  // namespace

std::string to_text(const Channel& channel, const MessageTag& tag) {
  return fmt::format("{} of stage {}, micro-batch {}{}, from rank {} to rank {}",
                     channel.kind == MessageKind::kActivation ? "activation" : "gradient", tag.stage, tag.microbatch,
                     tag.slice > 0 ? fmt::format(", slice {}", tag.slice) : "", channel.source, channel.destination);
}

/// One end of a message: a send with its payload, or a receive with its destination.
struct InProcessTransport::Message : Ticket {
  Channel channel;
  MessageTag tag;
  Tensor tensor;
  TransferTimes times;
  bool done = false;
};

struct InProcessTransport::Sum {
  SumGroup group;
  std::vector<std::span<float>> values;  // [member]
  std::vector<bool> joined;              // [member]
  std::size_t members_joined = 0;
  TransferTimes times;
  bool done = false;
};

/// One rank's place in a sum.
struct InProcessTransport::SumSeat : Ticket {
  std::shared_ptr<Sum> sum;
  int rank = 0;
};

InProcessTransport::InProcessTransport(const InProcessOptions& options, Clock clock)
    : options_(options), clock_(std::move(clock)), wake_(static_cast<std::size_t>(options.ranks)) {}

TicketPtr InProcessTransport::send(const Channel& channel, const MessageTag& tag, Tensor payload) {
  auto message = std::make_shared<Message>();
  message->channel = channel;
  message->tag = tag;
  message->tensor = std::move(payload);
  message->times.start = clock_();

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

TicketPtr InProcessTransport::receive(const Channel& channel, const MessageTag& tag, Tensor destination) {
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

/// Copies a message whose ends have met. Both are out of the queues: nobody else touches their tensors until they are
/// done.
void InProcessTransport::deliver(Message& send, Message& receive) {
  if (send.tag != receive.tag)
    throw RunError(fmt::format("the {} was sent where the {} was expected: the two ranks' lists disagree",
                               to_text(send.channel, send.tag), to_text(receive.channel, receive.tag)));
  if (send.tensor.elements() != receive.tensor.elements())
    throw RunError(fmt::format("the {} has {} elements and its receiver expects {}", to_text(send.channel, send.tag),
                               send.tensor.elements(), receive.tensor.elements()));
  const SimTime start = clock_();
  std::ranges::copy(send.tensor.values(), receive.tensor.data());
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
  wait(lock, message.channel.destination, message.done, [&] { return "the " + to_text(message.channel, message.tag); });
  return {std::move(message.tensor), message.times};
}

TransferTimes InProcessTransport::wait_sent(const TicketPtr& send) {
  Message& message = static_cast<Message&>(*send);
  std::unique_lock lock(mutex_);
  wait(lock, message.channel.source, message.done,
       [&] { return "the receiver of the " + to_text(message.channel, message.tag); });
  return message.times;
}

TicketPtr InProcessTransport::sum(const SumGroup& group, int rank, std::span<float> values) {
  const auto member = static_cast<std::size_t>(std::ranges::find(group.ranks, rank) - group.ranks.begin());
  assert(member < group.ranks.size());

  std::unique_lock lock(mutex_);
  require_running();
  ++moves_;
  std::deque<std::shared_ptr<Sum>>& open = sums_[group.id];
  auto place = std::ranges::find_if(open, [&](const auto& sum) { return !sum->joined[member]; });
  if (place == open.end()) {
    auto fresh = std::make_shared<Sum>();
    fresh->group = group;
    fresh->values.resize(group.ranks.size());
    fresh->joined.resize(group.ranks.size());
    place = open.insert(open.end(), std::move(fresh));
  }
  auto seat = std::make_shared<SumSeat>();
  seat->sum = *place;
  seat->rank = rank;
  Sum& sum = *seat->sum;
  sum.values[member] = values;
  sum.joined[member] = true;
  if (++sum.members_joined < group.ranks.size()) return seat;

  open.erase(place);
  lock.unlock();
  if (std::ranges::any_of(sum.values, [&](const auto& other) { return other.size() != values.size(); }))
    throw RunError(fmt::format("the members of sum {} bring different numbers of values", group.id));
  sum.times.start = clock_();
  add_up(sum.values);
  lock.lock();
  ++moves_;
  sum.times.end = clock_();
  sum.done = true;
  for (const int other : group.ranks) wake_[static_cast<std::size_t>(other)].notify_all();
  return seat;
}

TransferTimes InProcessTransport::wait_sum(const TicketPtr& ticket) {
  const SumSeat& seat = static_cast<const SumSeat&>(*ticket);
  std::unique_lock lock(mutex_);
  wait(lock, seat.rank, seat.sum->done, [&] {
    std::string missing;
    for (std::size_t i = 0; i < seat.sum->joined.size(); ++i)
      if (!seat.sum->joined[i]) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", seat.sum->group.ranks[i]);
    return "rank " + missing + " to join a sum";
  });
  return seat.sum->times;
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
  if (!aborted_) aborted_ = reason;
  for (std::condition_variable& condition : wake_) condition.notify_all();
}

void InProcessTransport::require_running() const {
  if (aborted_) throw RunAborted(*aborted_);
}

void InProcessTransport::wait(std::unique_lock<std::mutex>& lock, int rank, const bool& done,
                              const std::function<std::string()>& what) {
  std::condition_variable& condition = wake_[static_cast<std::size_t>(rank)];
  while (!done) {
    require_running();
    const std::int64_t moves = moves_;
    const bool woken = condition.wait_for(lock, options_.watchdog, [&] { return done || aborted_; });
    if (!woken && moves_ == moves)
      throw RunError(fmt::format("nothing moved for {} s while it waited for {}", options_.watchdog.count(), what()));
  }
}

}  // namespace plumb
