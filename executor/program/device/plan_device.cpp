#include "executor/program/device/plan_device.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "executor/program/device/arena.h"
#include "executor/program/device/call_clocks.h"
#include "executor/program/device/device_buffers.h"
#include "executor/program/device/device_calls.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns the lifetime of a buffer, as places in the list of calls: from its first call to the first call that starts
/// when its last has ended. Two calls that start together count from the first to the second.
ArenaBlock block_of(const DeviceBuffer& buffer, const DeviceCalls& calls) {
  const auto with_next = [&](std::int32_t call) {
    return call >= 0 && calls.calls[static_cast<std::size_t>(call)].with_next;
  };
  const std::int32_t first = buffer.calls.front(), last = buffer.calls.back();
  SimTime end{0};
  for (const std::int32_t call : buffer.calls) end = std::max(end, calls.ends[static_cast<std::size_t>(call)]);
  const std::int64_t after = std::ranges::lower_bound(calls.starts, end) - calls.starts.begin();
  return {.begin = with_next(first - 1) ? first - 1 : first,
          .end = std::max<std::int64_t>(after, with_next(last) ? last + 2 : last + 1),
          .bytes = buffer.bytes};
}

void place_buffers(DeviceProgram& program, const DeviceCalls& calls, std::size_t ranks) {
  std::vector<std::vector<std::size_t>> on_rank(ranks);
  std::vector<std::vector<std::size_t>> on_host(ranks);
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const DeviceBuffer& buffer = program.buffers[i];
    (buffer.use == BufferUse::kHost ? on_host : on_rank)[static_cast<std::size_t>(buffer.rank)].push_back(i);
  }
  const auto place = [&](const std::vector<std::size_t>& buffers) {
    std::vector<ArenaBlock> blocks;
    blocks.reserve(buffers.size());
    for (const std::size_t buffer : buffers) blocks.push_back(block_of(program.buffers[buffer], calls));
    const Arena arena = place_in_arena(blocks, kArenaAlignment);
    for (std::size_t i = 0; i < buffers.size(); ++i) program.buffers[buffers[i]].offset = arena.offsets[i];
    return std::pair{arena.bytes, most_live_bytes(blocks, kArenaAlignment)};
  };
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto [bytes, live] = place(on_rank[rank]);
    program.arena_bytes.push_back(bytes);
    program.live_bytes.push_back(live);
    program.host_bytes.push_back(place(on_host[rank]).first);
  }
}

/// The buffers that last used each place of a rank's arena.
class Occupants {
 public:
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

  /// Puts `buffer` at [begin, end). Returns the buffers that were there.
  std::vector<std::size_t> replace(std::int64_t begin, std::int64_t end, std::size_t buffer) {
    split_at(begin);
    split_at(end);
    std::vector<std::size_t> before;
    const auto first = from_.find(begin);
    const auto last = from_.find(end);
    for (auto it = first; it != last; ++it) {
      if (it->second != kNobody) before.push_back(it->second);
    }
    from_.erase(std::next(first), last);
    first->second = buffer;
    return before;
  }

 private:
  void split_at(std::int64_t offset) {
    const auto after = from_.upper_bound(offset);
    from_.try_emplace(offset, std::prev(after)->second);
  }

  std::map<std::int64_t, std::size_t> from_{{0, kNobody}};  // each entry holds up to the next key
};

/// Adds to each call's waits those that the arena asks for, and drops all that others imply (if `kept` allows it).
void settle_waits(DeviceProgram& program, std::size_t ranks, DeviceWaits kept) {
  std::vector<std::vector<std::size_t>> written_by(program.calls.size());  // [call] the buffers that it uses first
  for (std::size_t i = 0; i < program.buffers.size(); ++i)
    written_by[static_cast<std::size_t>(program.buffers[i].calls.front())].push_back(i);
  std::vector<Occupants> occupants(ranks), on_host(ranks);
  CallClocks clocks(static_cast<int>(ranks));
  std::vector<DeviceWait> of_both;  // waits for the places of two calls that start together
  for (std::size_t index = 0; index < program.calls.size(); ++index) {
    DeviceCall& call = program.calls[index];
    std::vector<DeviceWait> wanted = std::move(call.waits);
    const auto take_places = [&](std::size_t writer) {
      for (const std::size_t buffer : written_by[writer]) {
        const DeviceBuffer& own = program.buffers[buffer];
        Occupants& there = (own.use == BufferUse::kHost ? on_host : occupants)[static_cast<std::size_t>(own.rank)];
        for (const std::size_t former : there.replace(own.offset, own.offset + own.bytes, buffer)) {
          for (const std::int32_t user : program.buffers[former].calls) wanted.push_back({.call = user});
        }
      }
    };
    if (index > 0 && program.calls[index - 1].with_next) {  // its places were taken with those of the call before
      wanted.insert(wanted.end(), of_both.begin(), of_both.end());
    } else {
      const std::size_t before = wanted.size();
      take_places(index);
      if (call.with_next) take_places(index + 1);
      of_both.assign(wanted.begin() + static_cast<std::ptrdiff_t>(before), wanted.end());
    }
    std::ranges::sort(wanted, std::greater<>{}, [](const DeviceWait& wait) {
      return std::tuple{wait.call, wait.bucket == DeviceWait::kEnd, wait.bucket};
    });
    call.waits.clear();
    clocks.begin(call.rank, call.stream);
    for (const DeviceWait& wait : wanted) {
      const bool doubled = !call.waits.empty() && call.waits.back() == wait;
      if (doubled || (kept == DeviceWaits::kNeeded && clocks.precedes_newest(wait.call))) continue;
      call.waits.push_back(wait);
      clocks.wait(wait);
    }
  }
}

}  // namespace

std::int64_t event_count(const DeviceProgram& program) {
  std::vector<std::pair<std::int32_t, int>> events;
  for (const DeviceCall& call : program.calls) {
    for (const DeviceWait& wait : call.waits) events.emplace_back(wait.call, wait.bucket);
  }
  std::ranges::sort(events);
  return std::unique(events.begin(), events.end()) - events.begin();
}

DeviceProgram plan_device(const Schedule& lowered, const CostTable& costs, bool agrees, DeviceWaits waits,
                          std::span<const DeviceStageBytes> stage_bytes, const MicrobatchMemory& of_microbatches,
                          JointPasses passes, std::span<const MessagePair> pairs) {
  DeviceCalls calls = device_calls(lowered, costs, agrees, passes, pairs);
  DeviceProgram program{.buffers = device_buffers(lowered, costs, calls, stage_bytes, of_microbatches)};
  place_buffers(program, calls, lowered.ranks.size());
  program.calls = std::move(calls.calls);
  settle_waits(program, lowered.ranks.size(), waits);
  return program;
}

}}  // namespace plumb::executor
