#pragma once
// Which accesses of a block's threads happen before which (vector clocks; Lamport 1978, Mattern 1988). A
// warp's clock advances at every barrier. An access happens before another if its thread has met the other's
// at a barrier since.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/ptx/machine/instruction.h"

namespace plumb::test::ptx {

/// When a thread did something. Threads are numbered over the grid. Clock 0: never.
struct Moment {
  std::uint32_t thread = 0;
  std::uint32_t clock = 0;
};

class Clocks {
 public:
  using Seen = std::vector<std::uint32_t>;  ///< [warp] the latest clock of each warp that happens before

  Clocks(std::uint32_t block, std::uint32_t threads)
      : first_thread_(block * threads), threads_(threads), own_((threads + kWarpLanes - 1) / kWarpLanes, 1) {
    seen_.assign(own_.size(), Seen(own_.size(), 0));
  }

  Moment now(std::uint32_t thread) const { return {first_thread_ + thread, own_[thread / kWarpLanes]}; }

  /// True if `earlier` is known to be over for `thread` of this block. Nothing orders two blocks.
  bool is_over(Moment earlier, std::uint32_t thread) const {
    const std::uint32_t other = earlier.thread - first_thread_;
    if (other == thread || earlier.clock == 0) return true;
    if (other >= threads_) return false;
    const std::uint32_t warp = thread / kWarpLanes, other_warp = other / kWarpLanes;
    if (warp == other_warp) return earlier.clock < own_[warp];
    return earlier.clock <= seen_[warp][other_warp];
  }

  /// The warp's lanes meet each other (bar.warp.sync).
  void advance(std::size_t warp) { ++own_[warp]; }

  /// The warp brings to a barrier what is over for it.
  void arrive(std::size_t warp, Seen& at_barrier) {
    at_barrier.resize(own_.size(), 0);
    take_later(at_barrier, seen_[warp]);
    at_barrier[warp] = std::max(at_barrier[warp], own_[warp]);
    advance(warp);
  }
  void leave(std::size_t warp, const Seen& at_barrier) { take_later(seen_[warp], at_barrier); }

 private:
  static void take_later(Seen& into, const Seen& from) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
  }

  std::uint32_t first_thread_, threads_;
  std::vector<std::uint32_t> own_;  ///< [warp] the clock of its accesses now
  std::vector<Seen> seen_;          ///< [warp]
};

}  // namespace plumb::test::ptx
