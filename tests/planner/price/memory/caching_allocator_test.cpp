#include "planner/price/memory/caching_allocator.h"

#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
using Segments = CachingAllocator::Segments;

}  // namespace

TEST_CASE("requests have segments by their size") {
  const auto reserved = [](std::int64_t bytes) {
    CachingAllocator allocator(Segments::kFixed);
    allocator.allocate(bytes);
    return allocator.reserved_bytes();
  };
  CHECK(reserved(1) == 2 * kMiB);
  CHECK(reserved(kMiB) == 2 * kMiB);
  CHECK(reserved(kMiB + 1) == 20 * kMiB);
  CHECK(reserved(10 * kMiB - 512) == 20 * kMiB);
  CHECK(reserved(10 * kMiB) == 10 * kMiB);
  CHECK(reserved(11 * kMiB + 1) == 12 * kMiB);
}

TEST_CASE("a freed block serves the next request that fits, and what is left over serves others") {
  CachingAllocator allocator(Segments::kFixed);
  const auto whole = allocator.allocate(30 * kMiB);
  allocator.free(whole);
  const auto first = allocator.allocate(18 * kMiB);
  const auto second = allocator.allocate(12 * kMiB);
  CHECK(allocator.reserved_bytes() == 30 * kMiB);
  CHECK(allocator.allocated_bytes() == 30 * kMiB);
  allocator.free(first);
  allocator.free(second);
  allocator.allocate(30 * kMiB);  // the neighbours have joined
  CHECK(allocator.reserved_bytes() == 30 * kMiB);
}

TEST_CASE("a rest of a MiB or less stays with the block") {
  CachingAllocator allocator(Segments::kFixed);
  allocator.free(allocator.allocate(30 * kMiB));
  allocator.allocate(29 * kMiB);
  CHECK(allocator.allocated_bytes() == 30 * kMiB);
}

TEST_CASE("blocks of several sizes in turn are kept apart in fixed segments, and share expandable ones") {
  const auto reserved = [](Segments segments) {
    CachingAllocator allocator(segments);
    for (const std::int64_t bytes : {20 * kMiB, 40 * kMiB, 60 * kMiB, 80 * kMiB})
      allocator.free(allocator.allocate(bytes));
    return allocator.reserved_bytes();
  };
  CHECK(reserved(Segments::kFixed) == 200 * kMiB);
  CHECK(reserved(Segments::kExpandable) == 80 * kMiB);
}

TEST_CASE("what stands is never above what is reserved, and everything can be freed") {
  for (const Segments segments : {Segments::kFixed, Segments::kExpandable}) {
    std::mt19937 random(7);
    CachingAllocator allocator(segments);
    std::vector<CachingAllocator::Block> blocks;
    for (int i = 0; i < 20'000; ++i) {
      if (blocks.empty() || random() % 2 == 0) {
        blocks.push_back(allocator.allocate(1 + static_cast<std::int64_t>(random() % (1U << (10 + random() % 15)))));
      } else {
        std::swap(blocks[random() % blocks.size()], blocks.back());
        allocator.free(blocks.back());
        blocks.pop_back();
      }
      REQUIRE(allocator.allocated_bytes() <= allocator.reserved_bytes());
    }
    for (const auto block : blocks) allocator.free(block);
    CHECK(allocator.allocated_bytes() == 0);
  }
}

}  // namespace plumb::test
