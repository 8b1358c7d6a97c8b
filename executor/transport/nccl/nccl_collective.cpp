#include "executor/transport/nccl/nccl_collective.h"

#include <algorithm>
#include <cassert>

#include "executor/spec/division/equal_blocks.h"

namespace plumb { inline namespace executor {
namespace {

void gather_or_scatter(NcclPort& port, const CommunicatorRanks& group, int rank, bool gathers, std::int64_t elements,
                       const NcclPlaces& places, NcclPort::Call call) {
  const auto members = static_cast<int>(group.ranks.size());
  const auto own = static_cast<int>(std::ranges::find(group.ranks, rank) - group.ranks.begin());
  const std::int64_t size = bytes_of(places.element);
  const auto bound = [&](int member) {
    return places.bounds.empty() ? block_begin(elements, members, member)
                                 : places.bounds[static_cast<std::size_t>(member)];
  };
  const auto at = [&](std::int64_t element) { return static_cast<char*>(places.to) + element * size; };
  const std::int64_t each = bound(1);
  bool is_equal = true;
  for (int member = 0; member < members; ++member) is_equal &= bound(member + 1) - bound(member) == each;
  if (is_equal) {
    call.elements = each;
    call.from = gathers ? at(own * each) : at(0);
    call.to = gathers ? at(0) : at(own * each);
    return gathers ? port.all_gather(call) : port.reduce_scatter(call);
  }
  port.in_group([&] {
    for (int member = 0; member < members; ++member) {
      call.elements = bound(member + 1) - bound(member);
      call.from = call.to = at(bound(member));
      call.peer = member;
      if (gathers)
        port.broadcast(call);
      else
        port.reduce(call);
    }
  });
}

}  // namespace

void make_nccl_call(NcclPort& port, const CommunicatorRanks& group, int rank, const NcclCall& call,
                    const NcclPlaces& places, NcclPort::Communicator communicator, NcclPort::Stream stream) {
  const NcclPort::Call made{.from = places.from,
                            .to = places.to,
                            .elements = call.bytes / bytes_of(places.element),
                            .element = places.element,
                            .peer = call.peer,
                            .communicator = communicator,
                            .stream = stream};
  switch (call.kind) {
    case CollectiveKind::kSend:
      return port.send(made);
    case CollectiveKind::kReceive:
      return port.receive(made);
    case CollectiveKind::kBroadcast:
      return port.broadcast(made);
    case CollectiveKind::kReduce:
      return port.reduce(made);
    case CollectiveKind::kAllReduce:
      return port.all_reduce(made);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return gather_or_scatter(port, group, rank, call.kind == CollectiveKind::kAllGather, made.elements, places, made);
    default:
      assert(false && "shifts and all-to-alls are groups of sends and receives");
  }
}

void make_nccl_pairs(NcclPort& port, const CommunicatorRanks& group, int rank, bool is_shift, std::int64_t bytes,
                     const NcclPlaces& places, NcclPort::Communicator communicator, NcclPort::Stream stream) {
  const auto members = static_cast<int>(group.ranks.size());
  const auto own = static_cast<int>(std::ranges::find(group.ranks, rank) - group.ranks.begin());
  const auto at = [&](int member) { return is_shift ? 0 : member * bytes; };
  NcclPort::Call call{.elements = bytes / bytes_of(places.element),
                      .element = places.element,
                      .communicator = communicator,
                      .stream = stream};
  port.in_group([&] {
    for (int distance = 1; distance < (is_shift ? 2 : members); ++distance) {
      call.peer = (own + distance) % members;
      call.from = static_cast<const char*>(places.from) + at(call.peer);
      port.send(call);
      call.peer = (own - distance + members) % members;
      call.to = static_cast<char*>(places.to) + at(call.peer);
      port.receive(call);
    }
  });
}

}}  // namespace plumb::executor
