#pragma once
// How many blocks a kernel is launched with on a GPU.

#include <algorithm>
#include <cstdint>

namespace plumb { inline namespace executor { namespace cuda {

inline constexpr int kElementLanes = 256;  ///< threads of a block of a body that divides elements

/// Blocks of a body whose blocks take `items` in turn: one for each as far as a grid has room.
inline int blocks_of_items(std::int64_t items) {
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 30;
  return static_cast<int>(std::min(items, kMostBlocks));
}

/// Blocks of a body that divides elements, and whose threads loop over what is left: one at least.
inline int blocks_of_elements(std::int64_t elements, int multiprocessors) {
  constexpr std::int64_t kBlocksOfMultiprocessor = 16;
  const std::int64_t blocks =
      std::min((elements + kElementLanes - 1) / kElementLanes, kBlocksOfMultiprocessor * multiprocessors);
  return static_cast<int>(std::max<std::int64_t>(1, blocks));
}

}}}  // namespace plumb::executor::cuda
