#include "planner/price/memory/caching_allocator.h"

#include <algorithm>
#include <cassert>

namespace plumb { inline namespace planner {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kSmallestBlock = 512;
constexpr std::int64_t kLargestSmall = kMiB;
constexpr std::int64_t kSmallSegment = 2 * kMiB;
constexpr std::int64_t kLargeSegment = 20 * kMiB;
constexpr std::int64_t kOwnSegment = 10 * kMiB;  // requests of so much have a segment of their own

std::int64_t rounded(std::int64_t bytes, std::int64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

std::int64_t segment_bytes(std::int64_t bytes) {
  if (bytes <= kLargestSmall) return kSmallSegment;
  return bytes < kOwnSegment ? kLargeSegment : rounded(bytes, 2 * kMiB);
}

}  // namespace

CachingAllocator::Block CachingAllocator::allocate(std::int64_t bytes) {
  assert(bytes > 0);
  const std::int64_t size = rounded(bytes, kSmallestBlock);
  const bool small = size <= kLargestSmall;
  const auto fit = free_parts(small).lower_bound({size, -1, kNone});
  Block block = kNone;
  if (fit != free_parts(small).end()) {
    block = std::get<Block>(*fit);
    take(block);
  } else {
    block = segments_ == Segments::kExpandable ? grown(size, small) : new_part(segment_bytes(size), small);
  }
  const std::int64_t left = parts_[block].bytes - size;
  if (small || segments_ == Segments::kExpandable ? left >= kSmallestBlock : left > kLargestSmall) cut(block, size);
  parts_[block].used = true;
  allocated_ += parts_[block].bytes;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return block;
}

void CachingAllocator::free(Block block) {
  assert(parts_[block].used);
  parts_[block].used = false;
  allocated_ -= parts_[block].bytes;
  const Block behind = parts_[block].behind, before = parts_[block].before;
  if (behind != kNone && !parts_[behind].used) {
    take(behind);
    block = joined(block, behind);
  }
  if (before != kNone && !parts_[before].used) {
    take(before);
    block = joined(before, block);
  }
  keep(block);
}

CachingAllocator::Block CachingAllocator::new_part(std::int64_t bytes, bool small) {
  const Block block = added({.address = next_address_, .bytes = bytes, .small = small});
  next_address_ += bytes;
  reserved_ += bytes;
  return block;
}

CachingAllocator::Block CachingAllocator::added(const Part& part) {
  if (spare_.empty()) {
    parts_.push_back(part);
    return static_cast<Block>(parts_.size()) - 1;
  }
  const Block block = spare_.back();
  spare_.pop_back();
  parts_[block] = part;
  return block;
}

CachingAllocator::Block CachingAllocator::grown(std::int64_t bytes, bool small) {
  Block& last = last_[small ? 1 : 0];
  const bool extends = last != kNone && !parts_[last].used;
  const std::int64_t has = extends ? parts_[last].bytes : 0;
  const Block more = new_part(rounded(bytes - has, small ? kSmallSegment : kLargeSegment), small);
  if (last != kNone) {
    // The two segments grow in address ranges of their own: only the order inside one counts.
    parts_[more].before = last;
    parts_[last].behind = more;
  }
  const Block end = last;
  last = more;
  if (!extends) return more;
  take(end);
  return joined(end, more);
}

void CachingAllocator::cut(Block block, std::int64_t bytes) {
  const Part whole = parts_[block];
  const Block rest = added({.address = whole.address + bytes,
                            .bytes = whole.bytes - bytes,
                            .before = block,
                            .behind = whole.behind,
                            .small = whole.small});
  parts_[block].bytes = bytes;
  parts_[block].behind = rest;
  if (whole.behind != kNone) parts_[whole.behind].before = rest;
  Block& last = last_[whole.small ? 1 : 0];
  if (last == block) last = rest;
  keep(rest);
}

CachingAllocator::Block CachingAllocator::joined(Block first, Block second) {
  parts_[first].bytes += parts_[second].bytes;
  parts_[first].behind = parts_[second].behind;
  if (parts_[second].behind != kNone) parts_[parts_[second].behind].before = first;
  Block& last = last_[parts_[first].small ? 1 : 0];
  if (last == second) last = first;
  spare_.push_back(second);
  return first;
}

void CachingAllocator::keep(Block block) {
  free_parts(parts_[block].small).insert({parts_[block].bytes, parts_[block].address, block});
}

void CachingAllocator::take(Block block) {
  free_parts(parts_[block].small).erase({parts_[block].bytes, parts_[block].address, block});
}

}}  // namespace plumb::planner
