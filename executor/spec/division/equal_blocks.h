#pragma once
// A buffer in blocks as equal as can be, one for each member of a group.

#include <cstdint>

namespace plumb { inline namespace executor {

/// Returns the first element of block `block` of `blocks` as equal as can be: floor(block * elements / blocks), which
/// is `elements` for block = blocks.
inline std::int64_t block_begin(std::int64_t elements, int blocks, int block) {
  return elements * block / blocks;
}

}}  // namespace plumb::executor
