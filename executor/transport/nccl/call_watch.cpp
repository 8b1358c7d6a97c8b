#include "executor/transport/nccl/call_watch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace plumb { inline namespace executor {

void CallWatch::clear() {
  calls_.clear();
  streams_.clear();
  over_ = 0;
  has_advanced_ = false;
  last_.reset();
}

void CallWatch::begin(int stream, std::string text) {
  streams_[stream].calls.push_back(calls_.size());
  calls_.push_back({.text = std::move(text), .waits = {}});
}

void CallWatch::exchanges(std::string text) {
  Call& call = calls_.back();
  call.text += ": " + text;
  call.exchanges = true;
}

bool CallWatch::advance(const std::function<bool(std::size_t call)>& has_ended) {
  bool moved = false;
  for (auto& [number, stream] : streams_) {
    while (stream.over < stream.calls.size() && has_ended(stream.calls[stream.over])) {
      const std::size_t call = stream.calls[stream.over++];
      calls_[call].is_over = true;
      last_ = std::max(last_.value_or(0), call);
      ++over_;
      moved = true;
    }
  }
  has_advanced_ = true;
  return moved;
}

std::optional<std::size_t> CallWatch::stuck() const {
  std::optional<std::size_t> any, exchange;
  for (const auto& [number, stream] : streams_) {
    if (stream.over == stream.calls.size()) continue;
    const std::size_t next = stream.calls[stream.over];
    if (!can_run(calls_[next])) continue;
    std::optional<std::size_t>& first = calls_[next].exchanges ? exchange : any;
    first = std::min(first.value_or(next), next);
  }
  return exchange ? exchange : any;
}

bool CallWatch::can_run(const Call& call) const {
  return std::ranges::all_of(call.waits, [&](std::size_t earlier) { return calls_[earlier].is_over; });
}

std::string CallWatch::under_way() const {
  if (!has_advanced_ && !calls_.empty()) return calls_.back().text + " or earlier";
  std::vector<std::size_t> found;
  for (const auto& [number, stream] : streams_)
    if (stream.over < stream.calls.size() && can_run(calls_[stream.calls[stream.over]]))
      found.push_back(stream.calls[stream.over]);
  std::ranges::sort(found);
  std::string text;
  for (const std::size_t call : found) text += (text.empty() ? "" : " or ") + calls_[call].text;
  return text;
}

std::string CallWatch::text_of_fault(const std::string& calls, const std::string& reason) const {
  const std::string last = last_           ? "the last that it has completed is " + calls_[*last_].text
                           : has_advanced_ ? "it has completed nothing yet"
                                           : "what it has completed is not known";
  return fmt::format("{}{}{}; {}", calls, calls.empty() ? "" : ": ", reason, last);
}

}}  // namespace plumb::executor
