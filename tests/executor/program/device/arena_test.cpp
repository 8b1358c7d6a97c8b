#include "executor/program/device/arena.h"

#include <random>

#include <doctest/doctest.h>

namespace plumb::test { namespace {

TEST_CASE("arena: blocks that live one after the other take the same place") {
  const Arena arena = place_in_arena({{.begin = 0, .end = 2, .bytes = 100}, {.begin = 2, .end = 3, .bytes = 60}}, 1);
  CHECK(arena.offsets == std::vector<std::int64_t>{0, 0});
  CHECK(arena.bytes == 100);
}

TEST_CASE("arena: a block goes into the lowest gap between those that live with it") {
  // 64 bytes over all the time, 32 in the first half, 16 in the second, which takes the place of the 32.
  const std::vector<ArenaBlock> blocks{{0, 10, 64}, {0, 5, 32}, {5, 10, 16}};
  const Arena arena = place_in_arena(blocks, 1);
  CHECK(arena.offsets == std::vector<std::int64_t>{0, 64, 64});
  CHECK(arena.bytes == 96);
  CHECK(most_live_bytes(blocks, 1) == 96);
}

TEST_CASE("arena: offsets are multiples of the alignment, and so is what is live") {
  const std::vector<ArenaBlock> blocks{{0, 1, 5}, {0, 1, 3}};
  const Arena arena = place_in_arena(blocks, 8);
  CHECK(arena.offsets == std::vector<std::int64_t>{0, 8});
  CHECK(arena.bytes == 16);
  CHECK(most_live_bytes(blocks, 8) == 16);
}

TEST_CASE("arena: blocks that live at one moment never share bytes") {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same numbers every time
  for (int round = 0; round < 50; ++round) {
    std::vector<ArenaBlock> blocks;
    for (int i = 0; i < 60; ++i) {
      const auto begin = static_cast<std::int64_t>(random() % 100);
      blocks.push_back({.begin = begin,
                        .end = begin + 1 + static_cast<std::int64_t>(random() % 20),
                        .bytes = 1 + static_cast<std::int64_t>(random() % 1000)});
    }
    const Arena arena = place_in_arena(blocks, 16);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      CHECK(arena.offsets[i] % 16 == 0);
      CHECK(arena.offsets[i] + blocks[i].bytes <= arena.bytes);
      for (std::size_t j = 0; j < i; ++j) {
        const bool together = blocks[i].begin < blocks[j].end && blocks[j].begin < blocks[i].end;
        const bool apart = arena.offsets[i] + blocks[i].bytes <= arena.offsets[j] ||
                           arena.offsets[j] + blocks[j].bytes <= arena.offsets[i];
        CHECK((apart || !together));
      }
    }
    CHECK(arena.bytes >= most_live_bytes(blocks, 16));
    CHECK(arena.bytes <= 2 * most_live_bytes(blocks, 16));
  }
}

TEST_CASE("arena: nothing takes no room") {
  CHECK(place_in_arena({}, 512).bytes == 0);
  CHECK(most_live_bytes({}, 512) == 0);
}

}}  // namespace plumb::test
