#include "kernels/simt/experts/expert_blocks.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

constexpr std::int64_t kRanks = 3, kExperts = 4, kPicks = 37, kRoom = 40;
constexpr ExpertBlocks kBlockSize{.ranks = kRanks, .experts = kExperts, .rows = kRoom};

/// The picks of one rank: rows in the order of all experts, some dropped.
struct Picked {
  Integers chosen, places, bounds;
};

Picked picks_of_one_rank(std::mt19937& random) {
  Picked picked{.chosen = Integers(kPicks), .places = Integers(kPicks, -1), .bounds = {0}};
  for (std::int32_t& expert : picked.chosen) expert = static_cast<std::int32_t>(random() % (kRanks * kExperts - 1));
  std::int32_t row = 0;
  for (std::int32_t expert = 0; expert < kRanks * kExperts; ++expert) {
    for (std::size_t i = 0; i < kPicks; ++i)
      if (picked.chosen[i] == expert && random() % 5 > 0) picked.places[i] = row++;
    picked.bounds.push_back(row);
  }
  return picked;
}

}  // namespace

TEST_CASE("GPU rows go to blocks of their experts' ranks, and find the rows of own experts, rank by rank") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::vector<Picked> ranks;
  std::vector<Integers> counts;
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    Picked picked = picks_of_one_rank(random);
    const Integers dense = picked.places;
    Integers own(kRanks * kExperts, -7);
    run_on_host(simt::PlaceInBlocks{picked.places.data(), own.data(), picked.chosen.data(), picked.bounds.data(),
                                    kPicks, kBlockSize},
                kBlocks, kLanes);
    for (std::size_t e = 0; e < own.size(); ++e) CHECK(own[e] == picked.bounds[e + 1] - picked.bounds[e]);
    for (std::size_t i = 0; i < kPicks; ++i) {
      const std::int64_t to = picked.chosen[i] / kExperts;
      const std::int64_t expected =
          dense[i] < 0 ? -1 : to * kRoom + dense[i] - picked.bounds[static_cast<std::size_t>(to * kExperts)];
      CHECK(picked.places[i] == expected);
    }
    ranks.push_back(std::move(picked));
    counts.push_back(std::move(own));
  }
  for (std::int64_t self = 0; self < kRanks; ++self) {
    Integers received, places(kRanks * kRoom, -7), bounds(kExperts + 1, -7);
    for (const Integers& of_rank : counts)
      received.insert(received.end(), of_rank.begin() + self * kExperts, of_rank.begin() + (self + 1) * kExperts);
    run_on_host(simt::PlaceReceived{places.data(), bounds.data(), received.data(), kBlockSize}, kBlocks, kLanes);
    Integers expected(kRanks * kRoom, -1), expected_bounds{0};
    std::int32_t row = 0;
    for (std::int64_t expert = 0; expert < kExperts; ++expert) {  // each row one after the other
      for (std::int64_t rank = 0; rank < kRanks; ++rank) {
        const std::int32_t* of_rank = received.data() + rank * kExperts;
        std::int64_t at = rank * kRoom;
        for (std::int64_t before = 0; before < expert; ++before) at += of_rank[before];
        for (std::int32_t i = 0; i < of_rank[expert]; ++i) expected[static_cast<std::size_t>(at + i)] = row++;
      }
      expected_bounds.push_back(row);
    }
    CHECK(places == expected);
    CHECK(bounds == expected_bounds);
  }
}

TEST_CASE("GPU numbers of picks go to their places and come back, 0 for those that have none") {
  std::mt19937 random(std::random_device{}());
  const Picked picked = picks_of_one_rank(random);
  std::vector<float> values(kPicks), placed(kPicks, -1), back(kPicks, -1);
  for (std::size_t i = 0; i < kPicks; ++i) values[i] = static_cast<float>(1 + random() % 100);
  run_on_host(simt::PlaceSingles{placed.data(), values.data(), picked.places.data(), kPicks}, kBlocks, kLanes);
  run_on_host(simt::TakeSingles{back.data(), placed.data(), picked.places.data(), kPicks}, kBlocks, kLanes);
  for (std::size_t i = 0; i < kPicks; ++i) {
    CHECK(back[i] == (picked.places[i] < 0 ? 0.0F : values[i]));
    if (picked.places[i] >= 0) CHECK(placed[static_cast<std::size_t>(picked.places[i])] == values[i]);
  }
  CHECK(std::ranges::count(placed, -1.0F) == std::ranges::count(picked.places, -1));
}

}  // namespace plumb::test
