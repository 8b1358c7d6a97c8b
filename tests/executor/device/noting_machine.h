#pragma once
// What a rank on a device of its own exchanges, against executor/nccl's list: call by call on each communicator, and
// which messages are one group; and its own list, with its streams and waits, under executor/nccl's checker.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "executor/device/run_device.h"
#include "executor/nccl/check_nccl_order.h"
#include "executor/nccl/nccl_order.h"
#include "tests/executor/device/host_machine.h"
#include "tests/executor/nccl/group_kernels.h"

namespace plumb::test {

using NotedCall = std::tuple<NcclKind, std::int32_t, std::int64_t>;  // kind, peer, bytes
using NotedLists = std::map<std::pair<std::string, std::vector<int>>, std::vector<NotedCall>>;

/// Notes what is exchanged, exchanges nothing, and runs no kernels: what comes from others is not there. The list
/// counts tensor ranks' partial sums in fp32, in which the cpu backend has them; a device has them as activations are
/// stored, so that in 16 bits elements are compared, not bytes.
class NotingMachine : public HostMachine {
 public:
  explicit NotingMachine(std::optional<HalfFormat> half) : HostMachine(half) {}
  void join(const DeviceGroups& groups) override { groups_ = groups; }
  void begin_call(std::size_t index, int, DeviceStream stream, const char*) override {
    if (index == 0) {  // steps are alike: the last is kept
      made_ = {};
      last_of_.clear();
    }
    enqueued_ = index + 1;
    stream_ = static_cast<std::int32_t>(stream);
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
  void end_group() override { group_ = NcclCall::kNone; }
  std::vector<CallTimes> finish() override { return std::vector<CallTimes>(enqueued_); }
  void exchange(const DeviceExchange& exchange) override {
    const NcclCommunicator& of = groups_.communicators.at(static_cast<std::size_t>(exchange.communicator));
    CHECK(of.ranks.at(static_cast<std::size_t>(exchange.member)) == groups_.rank);
    auto& list = lists_[{of.name, of.ranks}];
    has_exchanged_ = true;
    NcclCall call{.kind = exchange.kind,
                  .communicator = exchange.communicator,
                  .peer = exchange.peer,
                  .group = group_,
                  .bytes = 4 * exchange.elements};
    if (exchange.pairs == DevicePairs::kNone) {
      list.emplace_back(call.kind, call.peer, call.bytes);
      add(call);
      return;
    }
    const auto members = static_cast<std::int32_t>(of.ranks.size());
    const bool is_shift = exchange.pairs == DevicePairs::kShift;
    call.bytes /= is_shift ? 1 : members;
    call.group = groups_made_++;
    for (std::int32_t distance = 1; distance < (is_shift ? 2 : members); ++distance)
      for (const NcclKind kind : {NcclKind::kSend, NcclKind::kReceive}) {
        call.kind = kind;
        call.peer = (exchange.member + (kind == NcclKind::kSend ? distance : members - distance)) % members;
        list.emplace_back(call.kind, call.peer, call.bytes);
        add(call);
      }
  }
  const NotedLists& lists() const { return lists_; }
  /// All calls of a replay in their order; kernels are compute, on whichever stream.
  const NcclRank& made() const { return made_; }
  const std::vector<NcclCommunicator>& communicators() const { return groups_.communicators; }

 private:
  void add(NcclCall call) {
    call.stream = stream_;
    call.first_wait = static_cast<std::int32_t>(made_.waits.size());
    call.waits = static_cast<std::int32_t>(waits_.size());
    made_.waits.insert(made_.waits.end(), waits_.begin(), waits_.end());
    made_.calls.push_back(call);
  }

  DeviceGroups groups_;
  NotedLists lists_;
  NcclRank made_;
  std::vector<std::int32_t> last_of_;  // [call] of made_
  std::vector<std::int32_t> waits_;    // of the call that has begun
  std::int32_t stream_ = 0, group_ = NcclCall::kNone, groups_made_ = 0;
  bool has_exchanged_ = false;
  std::size_t enqueued_ = 0;
};

inline NotedLists planned(const NcclOrder& order, std::size_t rank) {
  NotedLists lists;
  for (const NcclCall& call : order.ranks[rank].calls) {
    if (call.kind == NcclKind::kCompute) continue;
    const NcclCommunicator& of = order.communicators[static_cast<std::size_t>(call.communicator)];
    lists[{of.name, of.ranks}].emplace_back(call.kind, call.peer, call.bytes);
  }
  return lists;
}

using NotedGroup = std::set<std::tuple<std::string, std::vector<int>, int>>;  // communicator, which of its calls

/// Messages that stand together and go both ways, which is on two channels. Pieces of one message between meshes of
/// different shape are left out: in training they stand on one stream.
inline std::set<NotedGroup> groups_of(const std::vector<NcclCommunicator>& communicators, const NcclRank& rank) {
  std::map<std::int32_t, NotedGroup> groups;
  std::map<std::int32_t, std::set<NcclKind>> kinds;
  std::map<std::int32_t, int> calls;  // by communicator
  for (const NcclCall& call : rank.calls) {
    if (call.kind == NcclKind::kCompute) continue;
    const NcclCommunicator& of = communicators[static_cast<std::size_t>(call.communicator)];
    const int number = calls[call.communicator]++;
    if (call.group == NcclCall::kNone || of.ranks.size() != 2) continue;
    groups[call.group].emplace(of.name, of.ranks, number);
    kinds[call.group].insert(call.kind);
  }
  std::set<NotedGroup> found;
  for (const auto& [group, members] : groups)
    if (kinds[group].size() > 1 && std::get<1>(*members.begin()) != std::get<1>(*members.rbegin()))
      found.insert(members);
  return found;
}

/// Calls that are compared, of all ranks, in one step.
inline std::int64_t check_lists(RunSpec spec) {
  spec.steps = 1;
  std::int64_t calls = 0;
  const TrainingPlan plan = plan_training(spec);
  const NcclOrder order = plan_nccl_order(spec, plan);
  NcclOrder made;
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) {
    NotingMachine machine(spec.half);
    run_device_rank(spec, static_cast<int>(rank), machine);
    const NotedLists expected = planned(order, rank);
    for (const auto& [of, list] : expected) {
      const std::string group = of.first;
      CAPTURE(group);
      const auto own = machine.lists().find(of);
      REQUIRE(own != machine.lists().end());
      CHECK(own->second.size() == list.size());
      for (std::size_t i = 0; i < list.size() && i < own->second.size(); ++i) {
        CAPTURE(i);
        CHECK(nccl_kind_name(std::get<0>(own->second[i])) == nccl_kind_name(std::get<0>(list[i])));
        CHECK(std::get<1>(own->second[i]) == std::get<1>(list[i]));
        CHECK(std::get<2>(own->second[i]) == std::get<2>(list[i]));
      }
      calls += std::ssize(list);
    }
    CHECK(machine.lists().size() == expected.size());
    CHECK(groups_of(machine.communicators(), machine.made()) == groups_of(order.communicators, order.ranks[rank]));
    made.communicators = machine.communicators();
    made.ranks.push_back(machine.made());
  }
  // One kernel that waits a device is enough, two where a group has two communicators.
  for (const std::string& finding : check_nccl_order(made, {.channels = most_kernels_of_a_group(made)}))
    FAIL_CHECK(finding);
  return calls;
}

}  // namespace plumb::test
