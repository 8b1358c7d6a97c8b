#include "tests/executor/transport/nccl/order/training_order.h"

#include <doctest/doctest.h>

#include "executor/training/device/run_device.h"
#include "executor/training/training_plan.h"
#include "tests/executor/machines/host_machine.h"

namespace plumb::test {
namespace {

/// Notes the calls of one rank instead of making them.
class NotingMachine : public HostMachine {
 public:
  explicit NotingMachine(std::optional<HalfFormat> half) : HostMachine(half) {}
  void join(const DeviceGroups& groups) override { groups_ = groups; }
  void begin_call(std::size_t index, int, DeviceStream stream, const char* name) override {
    if (index == 0) {  // steps are alike: the last is kept
      made_ = {};
      last_of_.clear();
    }
    enqueued_ = index + 1;
    stream_ = static_cast<std::int32_t>(stream);
    name_ = name;
    waits_.clear();
    has_exchanged_ = false;
  }
  void wait_for(std::size_t earlier) override { waits_.push_back(last_of_.at(earlier)); }
  void end_call() override {
    take_queue();
    if (!has_exchanged_) add({});
    last_of_.resize(enqueued_);
    last_of_.back() = static_cast<std::int32_t>(made_.calls.size()) - 1;
  }
  void begin_group() override { group_ = groups_made_++; }
  void end_group() override { group_ = OrderedCall::kNone; }
  std::vector<CallTimes> finish() override { return std::vector<CallTimes>(enqueued_); }

  void exchange(const DeviceExchange& exchange) override {
    const CommunicatorRanks& of = groups_.communicators.at(static_cast<std::size_t>(exchange.communicator));
    CHECK(of.ranks.at(static_cast<std::size_t>(exchange.member)) == groups_.rank);
    has_exchanged_ = true;
    OrderedCall call{.kind = exchange.kind,
                     .communicator = exchange.communicator,
                     .peer = exchange.peer,
                     .group = group_,
                     .bytes = 4 * exchange.elements};
    if (exchange.pairs == DevicePairs::kNone) return add(call);
    const auto members = static_cast<std::int32_t>(of.ranks.size());
    const bool is_shift = exchange.pairs == DevicePairs::kShift;
    call.bytes /= is_shift ? 1 : members;
    call.group = groups_made_++;
    for (std::int32_t distance = 1; distance < (is_shift ? 2 : members); ++distance)
      for (const CollectiveKind kind : {CollectiveKind::kSend, CollectiveKind::kReceive}) {
        call.kind = kind;
        call.peer = (exchange.member + (kind == CollectiveKind::kSend ? distance : members - distance)) % members;
        add(call);
      }
  }

  const RankOrder& made() const { return made_; }
  const std::vector<CommunicatorRanks>& communicators() const { return groups_.communicators; }

 private:
  void add(OrderedCall call) {
    call.stream = stream_;
    call.action = name_;
    call.first_wait = static_cast<std::int32_t>(made_.waits.size());
    call.waits = static_cast<std::int32_t>(waits_.size());
    made_.waits.insert(made_.waits.end(), waits_.begin(), waits_.end());
    made_.calls.push_back(call);
  }

  DeviceGroups groups_;
  RankOrder made_;
  std::vector<std::int32_t> last_of_;  // [call of the machine] the last of made_
  std::vector<std::int32_t> waits_;    // of the call that has begun
  std::string name_;
  std::int32_t stream_ = 0, group_ = OrderedCall::kNone, groups_made_ = 0;
  bool has_exchanged_ = false;
  std::size_t enqueued_ = 0;
};

bool are_alike(const std::vector<CommunicatorRanks>& one, const std::vector<CommunicatorRanks>& other) {
  return std::ranges::equal(one, other, [](const CommunicatorRanks& a, const CommunicatorRanks& b) {
    return a.name == b.name && a.ranks == b.ranks;
  });
}

}  // namespace

NcclOrder training_order(RunSpec spec) {
  spec.steps = 1;
  const int ranks = world_size(plan_training(spec).replay.grid);
  NcclOrder order;
  for (int rank = 0; rank < ranks; ++rank) {
    NotingMachine machine(spec.half);
    run_device_rank(spec, rank, machine);
    if (rank == 0) order.communicators = machine.communicators();
    CHECK(are_alike(order.communicators, machine.communicators()));
    order.ranks.push_back(machine.made());
  }
  return order;
}

}  // namespace plumb::test
