#pragma once
// What a rank on a device of its own exchanges, against executor/nccl's list: call by call on each communicator.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "executor/device/run_device.h"
#include "executor/nccl/nccl_order.h"
#include "tests/executor/device/host_machine.h"

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
  void begin_call(std::size_t index, int, DeviceStream, const char*) override { enqueued_ = index + 1; }
  void wait_for(std::size_t) override {}
  void end_call() override { take_queue(); }
  std::vector<CallTimes> finish() override { return std::vector<CallTimes>(enqueued_); }
  void exchange(const DeviceExchange& exchange) override {
    const NcclCommunicator& of = groups_.communicators.at(static_cast<std::size_t>(exchange.communicator));
    CHECK(of.ranks.at(static_cast<std::size_t>(exchange.member)) == groups_.rank);
    auto& list = lists_[{of.name, of.ranks}];
    if (exchange.pairs == DevicePairs::kNone) {
      list.emplace_back(exchange.kind, exchange.peer, 4 * exchange.elements);
      return;
    }
    const auto members = static_cast<std::int32_t>(of.ranks.size());
    const bool is_shift = exchange.pairs == DevicePairs::kShift;
    const std::int64_t bytes = 4 * exchange.elements / (is_shift ? 1 : members);
    for (std::int32_t distance = 1; distance < (is_shift ? 2 : members); ++distance) {
      list.emplace_back(NcclKind::kSend, (exchange.member + distance) % members, bytes);
      list.emplace_back(NcclKind::kReceive, (exchange.member - distance + members) % members, bytes);
    }
  }
  const NotedLists& lists() const { return lists_; }

 private:
  DeviceGroups groups_;
  NotedLists lists_;
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

/// Calls that are compared, of all ranks, in one step.
inline std::int64_t check_lists(RunSpec spec) {
  spec.steps = 1;
  std::int64_t calls = 0;
  const NcclOrder order = plan_nccl_order(spec, plan_training(spec));
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
  }
  return calls;
}

}  // namespace plumb::test
