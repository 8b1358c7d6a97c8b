#pragma once
// The messages and collectives of one step of the cpu backend, as a transport writes them down on their way to the
// in-process one.

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "executor/training/training_rank.h"
#include "executor/transport/in_process_transport.h"
#include "executor/transport/rank_threads.h"

namespace plumb::test {

struct CpuStep {
  std::map<TransportChannel, std::vector<std::int64_t>> messages;  ///< elements, in order
  /// [group and member][the group's own count]
  std::map<std::pair<CommunicatorGroup, int>, std::map<std::int64_t, MoveTag>> collectives;
};

class RecordingTransport : public Transport {
 public:
  RecordingTransport(Transport& inner, CpuStep& recorded) : inner_(inner), recorded_(recorded) {}

  TicketPtr send(const TransportChannel& channel, const MessageTag& tag, Tensor payload) override {
    {
      const std::lock_guard lock(mutex_);
      recorded_.messages[channel].push_back(payload.elements());
    }
    return inner_.send(channel, tag, std::move(payload));
  }
  TicketPtr receive(const TransportChannel& channel, const MessageTag& tag, Tensor destination) override {
    return inner_.receive(channel, tag, std::move(destination));
  }
  Received wait_received(const TicketPtr& receive) override { return inner_.wait_received(receive); }
  TransferTimes wait_sent(const TicketPtr& send) override { return inner_.wait_sent(send); }
  std::unique_ptr<PointToPoint> connect(const CommunicatorGroup& group, int member) override {
    return std::make_unique<Lines>(*this, inner_.connect(group, member), std::pair{group, member});
  }
  Tensor copy_to(int rank, const Tensor& tensor) override { return inner_.copy_to(rank, tensor); }
  void abort(const std::string& reason) override { inner_.abort(reason); }

 private:
  class Lines : public PointToPoint {
   public:
    Lines(RecordingTransport& owner, std::unique_ptr<PointToPoint> inner, std::pair<CommunicatorGroup, int> key)
        : owner_(owner), inner_(std::move(inner)), key_(std::move(key)) {}
    void move(const MoveTag& tag, const Move& move) override {
      {
        const std::lock_guard lock(owner_.mutex_);
        MoveTag whole = tag;  // where members may differ: of equal blocks, or of the router's picks, maybe none
        if (tag.elements < 0)
          whole.elements = std::max<std::int64_t>(
              1, std::ssize(move.outgoing) * (tag.op == CollectiveKind::kShift ? 1 : std::ssize(key_.first.ranks)));
        owner_.recorded_.collectives[key_].try_emplace(tag.number, whole);
      }
      inner_->move(tag, move);
    }

   private:
    RecordingTransport& owner_;
    std::unique_ptr<PointToPoint> inner_;
    std::pair<CommunicatorGroup, int> key_;
  };

  Transport& inner_;
  CpuStep& recorded_;
  std::mutex mutex_;
};

/// Trains one step of the run on threads.
inline CpuStep cpu_step(const RunSpec& spec, const TrainingPlan& plan) {
  CpuStep recorded;
  const int ranks = world_size(plan.replay.grid);
  const RankPools memory(ranks);
  const Clock clock = monotonic_clock();
  InProcessTransport inner({.ranks = ranks, .sends = spec.sends, .pools = memory.pool_pointers()}, clock);
  RecordingTransport transport(inner, recorded);
  run_rank_threads(ranks, transport, spec.watchdog, {}, [&](int rank) {
    TrainingSeat seat;
    seat.world_rank = rank;
    seat.transport = &transport;
    seat.pool = memory.pools[static_cast<std::size_t>(rank)].get();
    seat.host_pool = memory.host_pools[static_cast<std::size_t>(rank)].get();
    seat.clock = clock;
    train_rank(spec, plan, seat);
  });
  return recorded;
}

}  // namespace plumb::test
