#include "executor/nccl/rank_calls.h"

#include <algorithm>

namespace plumb { inline namespace executor {
namespace {

constexpr std::int64_t kWordBytes = 4;

NcclKind kind_of(CollectiveKind op) {
  switch (op) {
    case CollectiveKind::kBroadcast:
      return NcclKind::kBroadcast;
    case CollectiveKind::kReduce:
      return NcclKind::kReduce;
    case CollectiveKind::kAllGather:
      return NcclKind::kAllGather;
    case CollectiveKind::kReduceScatter:
      return NcclKind::kReduceScatter;
    default:
      return NcclKind::kAllReduce;
  }
}

bool is_rooted(CollectiveKind op) {
  return op == CollectiveKind::kBroadcast || op == CollectiveKind::kReduce;
}

}  // namespace

std::int32_t NcclCommunicators::number_of(const std::string& name, const std::vector<int>& ranks) {
  const auto [it, is_new] = numbers_.try_emplace({name, ranks}, static_cast<std::int32_t>(list_.size()));
  if (is_new) list_.push_back({name, ranks});
  return it->second;
}

std::int32_t RankCalls::add(NcclCall call, std::vector<std::int32_t> waits) {
  const auto index = static_cast<std::int32_t>(rank_.calls.size());
  call.action = action_;
  call.first_wait = static_cast<std::int32_t>(rank_.waits.size());
  const auto stream = [&](std::int32_t wait) { return rank_.calls[static_cast<std::size_t>(wait)].stream; };
  std::ranges::sort(waits, std::ranges::greater{});
  for (const std::int32_t wait : waits) {  // keep only the last call of each other stream
    if (stream(wait) == call.stream) continue;
    const auto first = rank_.waits.begin() + call.first_wait;
    if (std::any_of(first, rank_.waits.end(), [&](std::int32_t other) { return stream(other) == stream(wait); }))
      continue;
    rank_.waits.push_back(wait);
  }
  call.waits = static_cast<std::int32_t>(rank_.waits.size()) - call.first_wait;
  rank_.calls.push_back(call);
  return index;
}

void RankCalls::compute() {
  last_compute_ = add({}, std::move(pending_));
  pending_ = std::move(later_);
  later_.clear();
}

void RankCalls::exchange(const NcclSeat& seat, const LayerExchange& exchange) {
  if (exchange.is_piece) return compute();
  if (seat.number == NcclCall::kNone || exchange.elements == 0) return;
  if (!exchange.joined) compute();
  start(seat, exchange, exchange.beside ? later_ : pending_);
}

void RankCalls::start(const NcclSeat& seat, const LayerExchange& exchange, std::vector<std::int32_t>& started) {
  if (seat.number == NcclCall::kNone || exchange.elements == 0) return;
  NcclCall call{.is_bound = exchange.is_bound,
                .communicator = seat.number,
                .stream = 1 + seat.number,
                .bytes = kWordBytes * exchange.elements};
  std::vector<std::int32_t> behind;
  if (last_compute_ != NcclCall::kNone) behind.push_back(last_compute_);
  const auto pair = [&](std::int32_t distance) {
    call.kind = NcclKind::kSend;
    call.peer = (seat.member + distance) % seat.members;
    started.push_back(add(call, behind));
    call.kind = NcclKind::kReceive;
    call.peer = (seat.member - distance + seat.members) % seat.members;
    started.push_back(add(call, behind));
  };
  if (exchange.op == CollectiveKind::kShift) {
    call.group = new_group();
    pair(1);
  } else if (exchange.op == CollectiveKind::kAllToAll) {
    call.group = new_group();
    call.bytes /= seat.members;
    for (std::int32_t distance = 1; distance < seat.members; ++distance) pair(distance);
  } else {
    call.kind = kind_of(exchange.op);
    if (is_rooted(exchange.op)) call.peer = exchange.root;
    started.push_back(add(call, behind));
  }
}

std::int32_t RankCalls::message(NcclKind kind, std::int32_t communicator, std::int64_t bytes, std::int32_t group,
                                std::int32_t behind) {
  std::vector<std::int32_t> waits;
  if (behind != NcclCall::kNone) waits.push_back(behind);
  return add({.kind = kind,
              .communicator = communicator,
              .peer = kind == NcclKind::kSend ? 1 : 0,  // a channel's members are its source and its destination
              .stream = 1 + communicator,
              .group = group,
              .bytes = bytes},
             std::move(waits));
}

}}  // namespace plumb::executor
