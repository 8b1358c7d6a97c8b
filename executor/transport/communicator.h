#pragma once
// A member's view of a process group, and the collectives in it. A collective is run while the member waits, or started
// and waited for later, so that it goes on beside the rank's compute.
//
//   Communicator data(transport, {"data group", {0, 2}}, rank, clock);
//   data.run(broadcast(weights, 0));
//   const CollectiveTicket sum = data.start(all_reduce(gradients));
//   ...
//   const TransferTimes times = data.wait(sum);
//
// Every member must call the same collectives in the same order, which is also the order in which they are done. They
// are made of the transport's moves between two members (collective_steps.h), so that values are added in an order that
// does not depend on timing and every transport has every collective. Once each kind that occurs has occurred, nothing
// allocates memory.

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "executor/transport/clock.h"
#include "executor/transport/pair_turns.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

/// A collective under way, to be waited for once.
struct CollectiveTicket {
  std::int64_t number = -1;  ///< its number among the group's collectives

  bool is_open() const { return number >= 0; }
};

class Communicator {
 public:
  /// `transport` must outlive the object. Asserts that `rank` is in the group.
  Communicator(Transport& transport, CommunicatorGroup group, int rank, Clock clock,
               CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing);

  /// Waits for all collectives that were started; after an abort of the transport these end at once.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int members() const { return static_cast<int>(group_.ranks.size()); }
  int member() const { return member_; }
  const CommunicatorGroup& group() const { return group_; }

  /// Returns the bytes of the buffers (Collective::values) of all collectives so far, by CollectiveKind.
  const std::array<std::int64_t, kCollectiveKindCount>& buffer_bytes() const { return buffer_bytes_; }

  /// While `turns` has two works, run() and start() give the turn away as soon as the collective is under way. It must
  /// outlive the object.
  void take_turns(PairTurns& turns) { turns_ = &turns; }

  /// Runs a collective behind all that were started. Throws RunError with the group, the rank and the collective if
  /// members disagree about what comes next or nothing moves any more, or RunAborted if another rank failed first.
  TransferTimes run(const Collective& collective);

  /// Starts a collective, whose memory must stay where it is, untouched, until it is waited for. It makes progress on a
  /// thread of the communicator, which the first call creates (none in a group of one).
  CollectiveTicket start(const Collective& collective);

  /// Waits for a collective. Throws as run() does if it or one before it has failed.
  TransferTimes wait(CollectiveTicket ticket);

 private:
  struct Operation {
    std::int64_t number = -1;  // -1: the entry is free
    Collective collective;
    TransferTimes times;
    bool done = false;
  };
  using StepsKey = std::tuple<CollectiveKind, int>;  // kind and root

  CollectiveTicket begin(const Collective& collective);
  TransferTimes perform(const Collective& collective, std::int64_t number);
  const std::vector<CollectiveStep>& steps_of(const Collective& collective);
  void work();
  Operation& operation(std::int64_t number);

  const CommunicatorGroup group_;
  const int member_;
  const Clock clock_;
  const CollectiveAlgorithm algorithm_;
  const std::unique_ptr<PointToPoint> lines_;  // null in a group of one
  PairTurns* turns_ = nullptr;
  std::array<std::int64_t, kCollectiveKindCount> buffer_bytes_{};
  std::map<StepsKey, std::vector<CollectiveStep>> steps_;
  std::vector<std::int64_t> bounds_;           // [members + 1] for a collective without bounds
  std::vector<std::int64_t> outgoing_bounds_;  // [members + 1] for a collective without bounds

  std::mutex mutex_;  // guards all members below
  std::condition_variable wake_worker_, wake_caller_;
  std::vector<Operation> operations_;  // started and not waited for, in any order
  std::int64_t begun_ = 0;             // collectives that were run or started
  std::int64_t finished_ = 0;          // collectives of these that have finished
  bool inline_ = false;                // run() is performing one
  bool closing_ = false;
  std::exception_ptr failure_;
  std::thread worker_;
};

}}  // namespace plumb::executor
