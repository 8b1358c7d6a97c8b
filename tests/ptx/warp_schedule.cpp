#include "tests/ptx/warp_schedule.h"

#include <algorithm>
#include <array>
#include <compare>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace plumb::test::ptx {
namespace {

constexpr std::size_t kSchedulers = 4;

/// A warp that is ready for its next phase.
struct ReadyWarp {
  std::int64_t at = 0;
  std::int64_t order = 0;  // in which warps became ready, of those that are so at the same time
  std::size_t block = 0, warp = 0, phase = 0, scheduler = 0;

  friend auto operator<=>(const ReadyWarp&, const ReadyWarp&) = default;  // NOLINT(modernize-use-nullptr)
};

class Schedule {
 public:
  Schedule(std::span<const BlockPhases> blocks, const BlockShare& share) : blocks_(blocks), share_(share) {}

  std::int64_t clocks() {
    for (int i = 0; i < share_.resident; ++i) begin_block(0);
    while (!ready_.empty()) {
      const ReadyWarp next = ready_.top();
      ready_.pop();
      go_on(next);
    }
    return end_;
  }

 private:
  struct Running {
    const BlockPhases* phases = nullptr;
    std::size_t done = 0;            // warps
    std::vector<ReadyWarp> waiting;  // at a barrier
  };

  void begin_block(std::int64_t at) {
    const std::size_t index = next_ / static_cast<std::size_t>(share_.copies);
    if (index >= blocks_.size()) return;
    next_ += static_cast<std::size_t>(share_.multiprocessors);
    running_.push_back({.phases = &blocks_[index]});
    for (std::size_t warp = 0; warp < blocks_[index].size(); ++warp)
      push({.at = at, .block = running_.size() - 1, .warp = warp, .scheduler = warps_++ % kSchedulers});
  }

  void push(ReadyWarp warp) {
    warp.order = order_++;
    ready_.push(warp);
  }

  void go_on(ReadyWarp warp) {
    Running& block = running_[warp.block];
    const WarpPhases& phases = (*block.phases)[warp.warp];
    if (warp.phase == phases.size()) {
      end_ = std::max(end_, warp.at);
      ++block.done;
      const bool has_ended = block.done == block.phases->size();
      release(block, warp.at);
      if (has_ended) begin_block(warp.at);
      return;
    }
    const Phase& phase = phases[warp.phase++];
    const std::int64_t begin = std::max(warp.at, free_at_[warp.scheduler]);
    free_at_[warp.scheduler] = begin + phase.slots;
    warp.at = begin + std::max(phase.slots, phase.clocks);
    if (!phase.ends_at_barrier) {
      push(warp);
      return;
    }
    block.waiting.push_back(warp);
    release(block, warp.at);
  }

  /// Lets the warps go on if all of the block that have not ended are at the barrier. A warp has come or ended `now`.
  void release(Running& block, std::int64_t now) {
    if (block.waiting.empty() || block.waiting.size() + block.done < block.phases->size()) return;
    const std::int64_t at = std::max(now, std::ranges::max(block.waiting, {}, &ReadyWarp::at).at);
    for (ReadyWarp warp : std::exchange(block.waiting, {})) {
      warp.at = at;
      push(warp);
    }
  }

  std::span<const BlockPhases> blocks_;
  BlockShare share_;
  std::size_t next_ = 0, warps_ = 0;
  std::int64_t order_ = 0, end_ = 0;
  std::array<std::int64_t, kSchedulers> free_at_{};
  std::vector<Running> running_;
  std::priority_queue<ReadyWarp, std::vector<ReadyWarp>, std::greater<>> ready_;
};

}  // namespace

std::int64_t schedule_clocks(std::span<const BlockPhases> blocks, const BlockShare& share) {
  return Schedule(blocks, share).clocks();
}

}  // namespace plumb::test::ptx
