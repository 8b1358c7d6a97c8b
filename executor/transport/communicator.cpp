#include "executor/transport/communicator.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "executor/spec/division/equal_blocks.h"

namespace plumb { inline namespace executor {
namespace {

int member_of(const CommunicatorGroup& group, int rank) {
  const auto place = std::ranges::find(group.ranks, rank);
  assert(place != group.ranks.end());
  return static_cast<int>(place - group.ranks.begin());
}

bool exchanges(CollectiveKind op) {
  return op == CollectiveKind::kAllToAll || op == CollectiveKind::kShift;
}

/// Returns the given bounds, or those of equal blocks, written into `equal`.
std::span<const std::int64_t> bounds_or_equal(std::span<const std::int64_t> given, std::size_t elements,
                                              std::vector<std::int64_t>& equal) {
  if (!given.empty()) return given;
  const int blocks = static_cast<int>(equal.size()) - 1;
  for (int block = 0; block <= blocks; ++block)
    equal[static_cast<std::size_t>(block)] = block_begin(static_cast<std::int64_t>(elements), blocks, block);
  return equal;
}

template <class T>
std::span<T> blocks_of(std::span<T> values, std::span<const std::int64_t> bounds, int first, int count) {
  const std::int64_t begin = bounds[static_cast<std::size_t>(first)];
  const std::int64_t end = bounds[static_cast<std::size_t>(first + count)];
  return values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

std::vector<CollectiveStep> steps_for(const Collective& collective, CollectiveAlgorithm algorithm,
                                      const CollectiveSeat& seat) {
  if (collective.op == CollectiveKind::kAllToAll) return exchange_steps(seat);
  return algorithm == CollectiveAlgorithm::kRing ? ring_steps(collective.op, seat) : tree_steps(collective.op, seat);
}

}  // namespace

Communicator::Communicator(Transport& transport, CommunicatorGroup group, int rank, Clock clock,
                           CollectiveAlgorithm algorithm)
    : group_(std::move(group)),
      member_(member_of(group_, rank)),
      clock_(std::move(clock)),
      algorithm_(algorithm),
      lines_(group_.ranks.size() > 1 ? transport.connect(group_, member_) : nullptr),
      bounds_(group_.ranks.size() + 1),
      outgoing_bounds_(group_.ranks.size() + 1) {}

Communicator::~Communicator() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_worker_.notify_one();
  if (worker_.joinable()) worker_.join();
}

TransferTimes Communicator::run(const Collective& collective) {
  if (turns_ != nullptr && turns_->are_two()) return wait(start(collective));
  buffer_bytes_[static_cast<std::size_t>(collective.op)] += static_cast<std::int64_t>(collective.values.size_bytes());
  std::int64_t number = 0;
  {
    std::unique_lock lock(mutex_);
    wake_caller_.wait(lock, [&] { return finished_ == begun_ || failure_ != nullptr; });
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    number = begun_++;
    inline_ = true;
  }
  const TransferTimes times = perform(collective, number);
  const std::lock_guard lock(mutex_);
  inline_ = false;
  ++finished_;
  return times;
}

CollectiveTicket Communicator::start(const Collective& collective) {
  const CollectiveTicket ticket = begin(collective);
  if (turns_ != nullptr && turns_->are_two()) turns_->give_away();
  return ticket;
}

/// Hands a collective to the communicator's thread.
CollectiveTicket Communicator::begin(const Collective& collective) {
  buffer_bytes_[static_cast<std::size_t>(collective.op)] += static_cast<std::int64_t>(collective.values.size_bytes());
  std::unique_lock lock(mutex_);
  const std::int64_t number = begun_++;
  auto place = std::ranges::find(operations_, -1, &Operation::number);
  if (place == operations_.end()) place = operations_.insert(place, Operation{});
  *place = {.number = number, .collective = collective};
  if (members() == 1) {
    place->times = perform(collective, number);
    place->done = true;
    ++finished_;
    return {number};
  }
  if (!worker_.joinable()) worker_ = std::thread(&Communicator::work, this);
  lock.unlock();
  wake_worker_.notify_one();
  return {number};
}

TransferTimes Communicator::wait(CollectiveTicket ticket) {
  std::unique_lock lock(mutex_);
  wake_caller_.wait(lock, [&] { return operation(ticket.number).done || failure_ != nullptr; });
  Operation& own = operation(ticket.number);
  if (!own.done) std::rethrow_exception(failure_);
  own.number = -1;
  return own.times;
}

Communicator::Operation& Communicator::operation(std::int64_t number) {
  const auto place = std::ranges::find(operations_, number, &Operation::number);
  assert(place != operations_.end());
  return *place;
}

/// The worker's loop: performs the collectives that were started, one after the other.
void Communicator::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto has_work = [&] { return finished_ < begun_ && !inline_; };
    wake_worker_.wait(lock, [&] { return closing_ || has_work(); });
    if (!has_work()) return;
    const std::int64_t number = finished_;
    const Collective collective = operation(number).collective;
    lock.unlock();
    TransferTimes times;
    std::exception_ptr failure;
    try {
      times = perform(collective, number);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure != nullptr) {
      failure_ = failure;
      wake_caller_.notify_all();
      return;
    }
    operation(number).times = times;
    operation(number).done = true;
    ++finished_;
    wake_caller_.notify_all();
  }
}

/// Performs a collective on the calling thread, whose turn it is.
TransferTimes Communicator::perform(const Collective& collective, std::int64_t number) {
  const SimTime start = clock_();
  const int n = members();
  assert(collective.root >= 0 && collective.root < n);
  if (collective.op == CollectiveKind::kShift) {
    const int distance = (collective.distance % n + n) % n;
    if (distance == 0)
      std::ranges::copy(collective.outgoing, collective.values.begin());
    else
      lines_->move({.number = number, .op = collective.op, .algorithm = algorithm_, .elements = -1},
                   {.send_to = (member_ + distance) % n,
                    .outgoing = collective.outgoing,
                    .receive_from = (member_ + n - distance) % n,
                    .incoming = collective.values});
    return {start, clock_()};
  }
  const bool is_exchange = exchanges(collective.op);
  const auto incoming_bounds = bounds_or_equal(collective.bounds, collective.values.size(), bounds_);
  const auto outgoing_bounds =
      is_exchange ? bounds_or_equal(collective.outgoing_bounds, collective.outgoing.size(), outgoing_bounds_)
                  : incoming_bounds;
  const std::span<const float> outgoing = is_exchange ? collective.outgoing : std::span<const float>(collective.values);
  assert(std::ssize(incoming_bounds) == n + 1 && std::ssize(outgoing_bounds) == n + 1);
  if (is_exchange)
    std::ranges::copy(blocks_of(outgoing, outgoing_bounds, member_, 1),
                      blocks_of(collective.values, incoming_bounds, member_, 1).begin());
  if (n == 1) return {start, clock_()};

  const MoveTag tag{.number = number,
                    .op = collective.op,
                    .algorithm = algorithm_,
                    .elements = is_exchange ? -1 : std::ssize(collective.values),
                    .root = collective.root};
  for (const CollectiveStep& step : steps_of(collective)) {
    Move move{.send_to = step.send_to, .receive_from = step.receive_from, .add = step.add};
    if (step.send_to >= 0) move.outgoing = blocks_of(outgoing, outgoing_bounds, step.send_first, step.send_count);
    if (step.receive_from >= 0)
      move.incoming = blocks_of(collective.values, incoming_bounds, step.receive_first, step.receive_count);
    lines_->move(tag, move);
  }
  return {start, clock_()};
}

const std::vector<CollectiveStep>& Communicator::steps_of(const Collective& collective) {
  const StepsKey key{collective.op, collective.root};
  const auto known = steps_.find(key);
  if (known != steps_.end()) return known->second;
  const CollectiveSeat seat{.members = members(), .member = member_, .root = collective.root};
  return steps_.emplace(key, steps_for(collective, algorithm_, seat)).first->second;
}

}}  // namespace plumb::executor
