#include "executor/program/device/arena.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace plumb { inline namespace executor {
namespace {

std::int64_t rounded_up(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / std::max<std::int64_t>(1, alignment) * alignment;
}

/// The placed blocks by the times at which they live, so that a new one is compared only with those of its time.
class PlacedBlocks {
 public:
  explicit PlacedBlocks(const std::vector<ArenaBlock>& blocks) : blocks_(blocks) {
    for (const ArenaBlock& block : blocks) last_moment_ = std::max(last_moment_, block.end);
  }

  /// Calls `visit` with each placed block that lives at some moment with `block`, once.
  template <class Visit>
  void for_each_beside(std::size_t block, Visit visit) const {
    const ArenaBlock& own = blocks_[block];
    for (std::size_t era = era_of(own.begin); era <= era_of(own.end - 1); ++era) {
      for (const std::size_t other : by_era_[era]) {
        const ArenaBlock& placed = blocks_[other];
        const std::int64_t both_from = std::max(own.begin, placed.begin);
        if (both_from < std::min(own.end, placed.end) && era_of(both_from) == era) visit(other);
      }
    }
  }

  void add(std::size_t block) {
    const ArenaBlock& own = blocks_[block];
    for (std::size_t era = era_of(own.begin); era <= era_of(own.end - 1); ++era) by_era_[era].push_back(block);
  }

 private:
  static constexpr std::int64_t kEras = 1024;

  std::size_t era_of(std::int64_t moment) const {
    return static_cast<std::size_t>(moment / (last_moment_ / kEras + 1));
  }

  const std::vector<ArenaBlock>& blocks_;
  std::int64_t last_moment_ = 0;
  std::vector<std::vector<std::size_t>> by_era_{static_cast<std::size_t>(kEras) + 1};
};

/// Returns the lowest offset for `bytes` beside the taken ranges (offset, end), which ascend by offset.
std::int64_t lowest_gap(const std::vector<std::pair<std::int64_t, std::int64_t>>& taken, std::int64_t bytes) {
  std::int64_t free_from = 0;
  for (const auto& [offset, end] : taken) {
    if (offset - free_from >= bytes) break;
    free_from = std::max(free_from, end);
  }
  return free_from;
}

}  // namespace

Arena place_in_arena(const std::vector<ArenaBlock>& blocks, std::int64_t alignment) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t block) {
    return std::tuple{-blocks[block].bytes, blocks[block].begin, block};
  });
  Arena arena{.offsets = std::vector<std::int64_t>(blocks.size(), 0)};
  PlacedBlocks placed(blocks);
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (const std::size_t block : order) {
    const std::int64_t bytes = rounded_up(blocks[block].bytes, alignment);
    taken.clear();
    placed.for_each_beside(block, [&](std::size_t other) {
      taken.emplace_back(arena.offsets[other], arena.offsets[other] + rounded_up(blocks[other].bytes, alignment));
    });
    std::ranges::sort(taken);
    arena.offsets[block] = lowest_gap(taken, bytes);
    arena.bytes = std::max(arena.bytes, arena.offsets[block] + bytes);
    placed.add(block);
  }
  return arena;
}

std::int64_t most_live_bytes(const std::vector<ArenaBlock>& blocks, std::int64_t alignment) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // (moment, bytes); at equal moments releases come first
  for (const ArenaBlock& block : blocks) {
    if (block.begin >= block.end) continue;
    const std::int64_t bytes = rounded_up(block.bytes, alignment);
    changes.emplace_back(block.begin, bytes);
    changes.emplace_back(block.end, -bytes);
  }
  std::ranges::sort(changes);
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const auto& [moment, bytes] : changes) most = std::max(most, live += bytes);
  return most;
}

}}  // namespace plumb::executor
