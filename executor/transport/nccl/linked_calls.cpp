#include "executor/transport/nccl/linked_calls.h"

#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "executor/transport/poll_pause.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

LinkedCalls::LinkedCalls(NcclPort& port, RankBoard& board, NcclElement stored, Seconds timeout)
    : port_(port),
      board_(board),
      stored_(stored),
      patience_({.timeout = timeout, .stop_if_told = [&board] { stop_if_told(board); }}),
      communicators_(port) {}

void LinkedCalls::join(const DeviceGroups& groups) {
  groups_ = groups;
  const std::vector<NcclId> ids = hand_out_ids(board_, groups_.communicators, port_);
  communicators_.join(groups_.communicators, groups_.rank, ids, patience_);
}

void LinkedCalls::begin_call(int stream, const char* name) {
  if (watch_.size() == 0)
    starts_ns_.push_back(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
  watch_.begin(stream, name);
}

NcclCall LinkedCalls::call_of(const DeviceExchange& exchange) const {
  const std::size_t members = groups_.communicators[static_cast<std::size_t>(exchange.communicator)].ranks.size();
  const NcclElement element = exchange.is_stored ? stored_ : NcclElement::kFp32;
  const bool is_pairs = exchange.pairs != DevicePairs::kNone, is_shift = exchange.pairs == DevicePairs::kShift;
  const auto count = static_cast<std::int32_t>(members);
  return {.kind = exchange.kind,
          .peer = is_pairs ? (exchange.member + 1) % count : exchange.peer,
          .bytes = exchange.elements * bytes_of(element) / (is_pairs && !is_shift ? count : 1)};
}

void LinkedCalls::exchange(const DeviceExchange& exchange, NcclPort::Stream stream, const HasEnded& has_ended) {
  watch_.exchanges(fmt::format(
      "{}{}, communicator {}", exchange.pairs != DevicePairs::kNone ? "group of pairs from " : "",
      to_text(groups_.communicators[static_cast<std::size_t>(exchange.communicator)], groups_.rank, call_of(exchange)),
      exchange.communicator));
  const Enqueued one{.exchange = &exchange, .stream = stream};
  if (in_group_)
    group_.push_back(one);
  else
    launch({one}, has_ended);
}

void LinkedCalls::end_group(const HasEnded& has_ended) {
  in_group_ = false;
  launch(std::exchange(group_, {}), has_ended);
}

void LinkedCalls::make(const Enqueued& one) {
  const DeviceExchange& exchange = *one.exchange;
  const CommunicatorRanks& group = groups_.communicators[static_cast<std::size_t>(exchange.communicator)];
  const NcclPort::Communicator communicator = communicators_.at(exchange.communicator).get();
  const bool is_pairs = exchange.pairs != DevicePairs::kNone;
  const NcclCall call = call_of(exchange);
  const NcclPlaces places{.from = is_pairs ? exchange.outgoing : exchange.values,
                          .to = exchange.values,
                          .bounds = exchange.bounds,
                          .element = exchange.is_stored ? stored_ : NcclElement::kFp32};
  if (is_pairs)
    make_nccl_pairs(port_, group, groups_.rank, exchange.pairs == DevicePairs::kShift, call.bytes, places, communicator,
                    one.stream);
  else
    make_nccl_call(port_, group, groups_.rank, call, places, communicator, one.stream);
}

void LinkedCalls::launch(const std::vector<Enqueued>& together, const HasEnded& has_ended) {
  try {
    const auto make_all = [&] {
      for (const Enqueued& one : together) make(one);
    };
    if (together.size() > 1)
      port_.in_group(make_all);
    else
      make_all();
    for (const Enqueued& one : together) communicators_.at(one.exchange->communicator).settle("it is launched");
  } catch (const RunAborted&) {
    communicators_.abort();
    throw;
  } catch (const RunError& error) {
    look_again(has_ended, watch_.size() - together.size());
    fail(watch_.text_of(watch_.size() - 1), error.what());
  }
}

void LinkedCalls::wait_until(const std::function<bool()>& is_over, const HasEnded& has_ended) {
  auto end = std::chrono::steady_clock::now() + patience_.timeout;
  PollPause pause = PollPause::of_device();
  while (true) {
    try {
      if (watch_.advance(has_ended)) {
        end = std::chrono::steady_clock::now() + patience_.timeout;
        pause.restart();
      }
      if (is_over()) return;
    } catch (const RunError& error) {
      fail(watch_.under_way(), error.what());
    }
    try {
      communicators_.poll();
      patience_.stop_if_told();
      if (std::chrono::steady_clock::now() > end)
        throw RunError(fmt::format("for {:g} s nothing has come of it", patience_.timeout.count()));
    } catch (const RunAborted&) {
      communicators_.abort();
      throw;
    } catch (const RunError& error) {
      look_again(has_ended, watch_.size());
      const std::optional<std::size_t> at = watch_.stuck();
      fail(at ? watch_.text_of(*at) : "", error.what());
    }
    pause.pause();
  }
}

void LinkedCalls::finish(const HasEnded& has_ended) {
  wait_until([this] { return watch_.is_over(); }, has_ended);
  watch_.clear();
}

void LinkedCalls::leave() {
  communicators_.finish();
}

std::string LinkedCalls::text_of_fault(const std::string& reason) {
  return told(watch_.under_way(), reason);
}

/// Notes which calls are over by now, as far as the device still answers, since a call that has failed may have begun
/// meanwhile.
void LinkedCalls::look_again(const HasEnded& has_ended, std::size_t enqueued) {
  try {
    watch_.advance([&](std::size_t call) { return call < enqueued && has_ended(call); });
  } catch (const RunError&) {  // a fault of calls behind the first
  }
}

/// Tells the board before anything is aborted, since the abort would make the others notice.
std::string LinkedCalls::told(const std::string& calls, const std::string& reason) {
  std::string text = fmt::format("rank {}, {}", groups_.rank, watch_.text_of_fault(calls, reason));
  board_.tell(text);
  return text;
}

void LinkedCalls::fail(const std::string& calls, const std::string& reason) {
  const std::string text = told(calls, reason);
  communicators_.abort();
  throw RunError(text);
}

}}  // namespace plumb::executor
