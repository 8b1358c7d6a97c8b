#pragma once
// NCCL's calls as transfers between a member and the others: of a collective everybody sends to everybody, and sums in
// the order of the members, so that all have the same bits.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "executor/transport/nccl/nccl_call.h"
#include "executor/transport/nccl/nccl_port.h"
#include "kernels/simt/number.h"
#include "tests/executor/transport/nccl/host_lines.h"

namespace plumb::test {

/// Calls of one member that go on beside each other: a group's.
class HostExchange {
 public:
  /// The lines outlive it. Buffers are those of the call.
  void add(HostLines& lines, CollectiveKind kind, const NcclPort::Call& call) {
    const Adding adding{lines, kind, call, call.elements * bytes_of(call.element)};
    switch (kind) {
      case CollectiveKind::kSend:
        return send(adding, call.peer, call.from);
      case CollectiveKind::kReceive:
        return receive(adding, call.peer, call.to);
      case CollectiveKind::kBroadcast:
        if (lines.member() != call.peer) return receive(adding, call.peer, call.to);
        send_to_others(adding, 0);
        return keep(call.to, call.from, adding.bytes);
      case CollectiveKind::kReduce:
        if (lines.member() == call.peer) return add_up(adding, call.from);
        return send(adding, call.peer, call.from);
      case CollectiveKind::kAllReduce:
        send_to_others(adding, 0);
        return add_up(adding, call.from);
      case CollectiveKind::kReduceScatter:
        send_to_others(adding, adding.bytes);
        return add_up(adding, static_cast<const std::byte*>(call.from) + lines.member() * adding.bytes);
      case CollectiveKind::kAllGather: {
        auto* to = static_cast<std::byte*>(call.to);
        send_to_others(adding, 0);
        for (int other = 0; other < lines.members(); ++other)
          if (other != lines.member()) receive(adding, other, to + other * adding.bytes);
        return keep(to + lines.member() * adding.bytes, call.from, adding.bytes);
      }
      default:
        assert(false && "NCCL has no such call");
    }
  }

  /// Moves what can be moved now; whether it was something. Throws RunError where ranks do not agree.
  bool step() {
    if (is_over_) return false;
    bool has_moved = false;
    std::set<const void*> taken;
    for (HostTransfer& move : moves_)
      if (!move.is_over() && taken.insert(move.end()).second) has_moved |= move.step();
    if (!taken.empty()) return has_moved;
    for (const auto& last : lasts_) last();
    return is_over_ = true;
  }
  bool is_over() const { return is_over_; }

 private:
  struct Adding {
    HostLines& lines;
    CollectiveKind kind;
    const NcclPort::Call& call;
    std::int64_t bytes;

    /// Kind and size of a collective; both ends of a message mean one thing.
    std::uint64_t what() const {
      if (kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive) return 0;
      return (static_cast<std::uint64_t>(bytes) << 16U) + (static_cast<std::uint64_t>(kind) << 12U) +
             (static_cast<std::uint64_t>(call.element) << 8U) + static_cast<std::uint64_t>(call.peer + 1);
    }
  };

  void send(const Adding& adding, int to, const void* from) {
    moves_.push_back(HostTransfer::out(adding.lines, to, from, adding.bytes, adding.what()));
  }
  void receive(const Adding& adding, int from, void* to) {
    moves_.push_back(HostTransfer::in(adding.lines, from, to, adding.bytes, adding.what()));
  }
  void send_to_others(const Adding& adding, std::int64_t bytes_apart) {
    for (int other = 0; other < adding.lines.members(); ++other)
      if (other != adding.lines.member())
        send(adding, other, static_cast<const std::byte*>(adding.call.from) + other * bytes_apart);
  }
  /// Does the sums and copies when all has moved, as buffers may be in place.
  void keep(void* to, const void* from, std::int64_t bytes) {
    lasts_.emplace_back([=] {
      if (bytes > 0) std::memmove(to, from, static_cast<std::size_t>(bytes));
    });
  }
  void add_up(const Adding& adding, const void* own) {
    const int members = adding.lines.members(), self = adding.lines.member();
    const auto bytes = static_cast<std::size_t>(adding.bytes);
    auto parts = std::make_shared<Parts>(static_cast<std::size_t>(members), std::vector<std::byte>(bytes));
    for (int other = 0; other < members; ++other) {
      std::byte* there = (*parts)[static_cast<std::size_t>(other)].data();
      if (other != self) receive(adding, other, there);
      if (other == self && bytes > 0) std::memcpy(there, own, bytes);
    }
    lasts_.emplace_back([parts, call = adding.call] {
      if (call.element == NcclElement::kFp32) return sum<float>(*parts, call);
      if (call.element == NcclElement::kFp16) return sum<Fp16>(*parts, call);
      sum<Bf16>(*parts, call);
    });
  }

  using Parts = std::vector<std::vector<std::byte>>;  // [member]
  template <class S>
  static void sum(const Parts& parts, const NcclPort::Call& call) {
    auto* to = static_cast<S*>(call.to);
    for (std::int64_t i = 0; i < call.elements; ++i) {
      float sum = 0;
      for (const std::vector<std::byte>& part : parts) sum += widened(reinterpret_cast<const S*>(part.data())[i]);
      store(to[i], sum);
    }
  }

  std::vector<HostTransfer> moves_;
  std::vector<std::function<void()>> lasts_;
  bool is_over_ = false;
};

}  // namespace plumb::test
