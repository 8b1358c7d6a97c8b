#pragma once
// PyTorch's caching allocator, played: which bytes it reserves from the driver for a list of allocations and frees. It
// keeps what a program frees for later requests of about the same size, so that it reserves more than ever stands.
//
//   CachingAllocator allocator(CachingAllocator::Segments::kFixed);
//   const auto block = allocator.allocate(30 << 20);    // a segment of 30 MiB
//   allocator.free(block);
//   allocator.allocate(28 << 20);                       // the first 28 MiB of it; 2 MiB are left over
//   allocator.reserved_bytes()                          -> 30 MiB
//
// Requests are rounded up to 512 bytes. Up to 1 MiB they share segments of 2 MiB, below 10 MiB segments of 20 MiB, and
// larger ones have a segment of their own, of a multiple of 2 MiB. The smallest free block that is large enough serves
// a request; what it has more is cut off if it is above 1 MiB (512 bytes among the small). Free neighbours in a segment
// join. Expandable segments: one segment for the small requests and one for the others, which grow at their end by 2
// and by 20 MiB. Source: pytorch/pytorch v2.5 c10/cuda/CUDACachingAllocator.cpp (BSD-3-Clause, facts restated).

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace plumb { inline namespace planner {

class CachingAllocator {
 public:
  enum class Segments : std::uint8_t { kFixed, kExpandable };
  using Block = int;

  explicit CachingAllocator(Segments segments) : segments_(segments) {}

  /// Returns a block of `bytes` or more. Asserts that bytes are above 0.
  Block allocate(std::int64_t bytes);

  /// Asserts that the block was allocated and not yet freed.
  void free(Block block);

  std::int64_t allocated_bytes() const { return allocated_; }
  std::int64_t peak_allocated_bytes() const { return peak_allocated_; }
  std::int64_t reserved_bytes() const { return reserved_; }  ///< it never falls: nothing is given back to the driver

 private:
  static constexpr Block kNone = -1;
  struct Part {
    std::int64_t address = 0;
    std::int64_t bytes = 0;
    Block before = kNone, behind = kNone;  ///< neighbours in the segment
    bool small = false;
    bool used = false;
  };
  using FreeParts = std::set<std::tuple<std::int64_t, std::int64_t, Block>>;  ///< bytes, address, block

  Block added(const Part& part);
  Block new_part(std::int64_t bytes, bool small);
  Block grown(std::int64_t bytes, bool small);
  void cut(Block block, std::int64_t bytes);
  Block joined(Block first, Block second);
  FreeParts& free_parts(bool small) { return free_[small ? 1 : 0]; }
  void keep(Block block);
  void take(Block block);

  Segments segments_;
  std::vector<Part> parts_;
  std::vector<Block> spare_;        ///< places in parts_ that no block has
  FreeParts free_[2];               ///< large, small
  Block last_[2] = {kNone, kNone};  ///< at the end of the expandable segments
  std::int64_t next_address_ = 0;
  std::int64_t allocated_ = 0;
  std::int64_t peak_allocated_ = 0;
  std::int64_t reserved_ = 0;
};

}}  // namespace plumb::planner
