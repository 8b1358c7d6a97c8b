#pragma once
// Places for blocks of memory whose lifetimes are known in advance.

#include <cstdint>
#include <vector>

namespace plumb { inline namespace executor {

/// A block that is needed from moment `begin` (0 or later) up to, not including, the later moment `end`.
struct ArenaBlock {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t bytes = 0;
};

struct Arena {
  std::vector<std::int64_t> offsets;  ///< [block] multiples of the alignment
  std::int64_t bytes = 0;             ///< the end of the highest block
};

/// Places the blocks so that those that live at the same moment do not overlap. The largest goes first, each into the
/// lowest gap that fits it among the blocks placed before ("greedy by size", Pisarchyk and Lee 2020, section 5.2);
/// equal ones go in order of their beginning. The time is quadratic in the number of blocks that live at once.
Arena place_in_arena(const std::vector<ArenaBlock>& blocks, std::int64_t alignment);

/// Returns the most bytes that live at one moment, each block rounded up to the alignment.
std::int64_t most_live_bytes(const std::vector<ArenaBlock>& blocks, std::int64_t alignment);

}}  // namespace plumb::executor
