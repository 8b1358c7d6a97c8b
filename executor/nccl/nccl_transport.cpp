#include "executor/nccl/nccl_transport.h"

#include <chrono>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

NcclTransport::NcclTransport(NcclPort& port, const NcclOrder& order, int rank, const std::vector<NcclId>& ids,
                             const NcclPatience& patience)
    : port_(port),
      order_(order),
      rank_(rank),
      list_(order.ranks[static_cast<std::size_t>(rank)]),
      patience_(patience),
      communicators_(join_communicators(port, order.communicators, rank, ids, patience)) {
  for (const NcclCall& call : list_.calls) {
    if (!streams_.contains(call.stream)) streams_[call.stream] = port_.make_stream();
    events_.push_back(port_.make_event());
  }
}

NcclTransport::~NcclTransport() {
  abort();
  for (const NcclPort::Event event : events_) port_.destroy_event(event);
  for (const auto& [number, stream] : streams_) port_.destroy_stream(stream);
}

void NcclTransport::run(const EnqueueCompute& compute, const PlaceOf& place_of) {
  watch_.clear();
  enqueued_ = 0;
  try {
    for (; enqueued_ < list_.calls.size(); ++enqueued_) enqueue(enqueued_, compute, place_of);
    wait_for_end();
  } catch (const RunAborted&) {
    abort();
    throw;
  } catch (const RunError& error) {
    try {
      advance();
    } catch (const RunError&) {  // of what was behind the first
    }
    const std::optional<std::size_t> at = enqueued_ < list_.calls.size() ? std::optional(enqueued_) : watch_.stuck();
    const std::string text =
        fmt::format("rank {}, {}", rank_, watch_.text_of_fault(at ? watch_.text_of(*at) : "", error.what()));
    abort();
    throw RunError(text);
  }
}

void NcclTransport::finish() {
  for (const auto& [number, communicator] : communicators_) communicator->finish();
  communicators_.clear();
}

void NcclTransport::enqueue(std::size_t index, const EnqueueCompute& compute, const PlaceOf& place_of) {
  const NcclCall& call = list_.calls[index];
  watch_.begin(call.stream, fmt::format("action {}", call.action));
  for (std::int32_t i = 0; i < call.waits; ++i)
    watch_.wait_for(static_cast<std::size_t>(list_.waits[static_cast<std::size_t>(call.first_wait + i)]));
  if (call.kind != NcclKind::kCompute)
    watch_.exchanges(fmt::format("{}, communicator {}", to_text(order_, rank_, call), call.communicator));
  const bool in_group = call.group != NcclCall::kNone;
  const bool begins = in_group && (index == 0 || list_.calls[index - 1].group != call.group);
  const bool ends = in_group && (index + 1 == list_.calls.size() || list_.calls[index + 1].group != call.group);
  // All waits of a group stand before it: NCCL enqueues nothing until its end.
  for (std::size_t member = index;
       member < list_.calls.size() && (member == index || (begins && list_.calls[member].group == call.group));
       ++member) {
    if (in_group && !begins) break;
    const NcclCall& of = list_.calls[member];
    for (std::int32_t i = 0; i < of.waits; ++i)
      port_.wait(stream_of(of),
                 events_[static_cast<std::size_t>(list_.waits[static_cast<std::size_t>(of.first_wait + i)])]);
  }
  if (begins) port_.group_start();
  if (call.kind == NcclKind::kCompute)
    compute(call, stream_of(call));
  else
    make_nccl_call(port_, order_.communicators[static_cast<std::size_t>(call.communicator)], rank_, call,
                   place_of(call), communicators_.at(call.communicator)->get(), stream_of(call));
  if (ends) port_.group_end();
  if (in_group && !ends) return;
  std::size_t first = index;
  while (in_group && first > 0 && list_.calls[first - 1].group == call.group) --first;
  for (std::size_t member = first; member <= index; ++member) {
    const NcclCall& of = list_.calls[member];
    // The launch of a call that does not block may go on behind: its event would be recorded too early.
    if (of.kind != NcclKind::kCompute) communicators_.at(of.communicator)->settle("it is launched");
    port_.record(events_[member], stream_of(of));
  }
}

bool NcclTransport::advance() {
  return watch_.advance([&](std::size_t call) { return call < enqueued_ && port_.has_ended(events_[call]); });
}

void NcclTransport::wait_for_end() {
  auto end = std::chrono::steady_clock::now() + patience_.timeout;
  while (true) {
    if (advance()) end = std::chrono::steady_clock::now() + patience_.timeout;
    if (watch_.is_over()) return;
    for (const auto& [number, communicator] : communicators_) communicator->poll("its calls run");
    if (patience_.stop_if_told) patience_.stop_if_told();
    if (std::chrono::steady_clock::now() > end)
      throw RunError(fmt::format("for {:g} s nothing has come of it", patience_.timeout.count()));
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}}  // namespace plumb::executor
