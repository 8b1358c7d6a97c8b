#include "executor/layers/host/expert_routes.h"

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

using Indices = std::vector<std::int32_t>;

struct Placed {
  Indices places, rows;

  friend bool operator==(const Placed&, const Placed&) = default;
};

Placed placed_picks(const Indices& picks, const ContextTokens& own, const TokenRange& routed, const RouteSize& size) {
  Placed placed{Indices(static_cast<std::size_t>(size.sequences * own.count() * size.picks)),
                Indices(static_cast<std::size_t>(size.experts))};
  place_picks(placed.places, placed.rows, picks, own, routed, size);
  return placed;
}

Placed placed_picks(const Indices& picks, const ContextTokens& own, const RouteSize& size) {
  return placed_picks(picks, own, {0, size.sequences * own.count()}, size);
}

// Picks of two sequences of four tokens, two picks a token among three experts.
const Indices kPicks = {0, 1, 0, 2, 1, 0, 0, 1, /**/ 2, 0, 2, 1, 2, 0, 1, 2};
constexpr RouteSize kSize{.sequences = 2, .sequence = 4, .experts = 3, .picks = 2, .capacity = 4};

}  // namespace

TEST_CASE("picks are rows by expert, in the order of tokens") {
  // Expert 0 has picks 0, 2, 5, 6 and 9, 13; expert 1 1, 4, 7 and 11, 14; expert 2 3 and 8, 10, 12, 15.
  const Placed placed = placed_picks(kPicks, {.first = {0, 4}}, kSize);
  CHECK(placed.rows == Indices{6, 5, 5});
  CHECK(placed.places == Indices{0, 6, 1, 11, 7, 2, 3, 8, 12, 4, 13, 9, 14, 5, 10, 15});
}

TEST_CASE("an expert that is full drops the later picks of each sequence") {
  RouteSize size = kSize;
  size.capacity = 2;
  const Placed placed = placed_picks(kPicks, {.first = {0, 4}}, size);
  CHECK(placed.rows == Indices{4, 4, 3});
  CHECK(placed.places == Indices{0, 4, 1, 8, 5, -1, -1, -1, 9, 2, 10, 6, -1, 3, 7, -1});
}

TEST_CASE("what is dropped does not depend on where the tokens are") {
  RouteSize size = kSize;
  size.capacity = 2;
  const Placed whole = placed_picks(kPicks, {.first = {0, 4}}, size);
  const auto dropped = [&](const ContextTokens& own) {
    std::vector<bool> drops;
    for (const std::int32_t at : placed_picks(kPicks, own, size).places) drops.push_back(at < 0);
    return drops;
  };
  const auto expected = [&](const ContextTokens& own) {
    std::vector<bool> drops;
    for (std::int64_t sequence = 0; sequence < 2; ++sequence)
      for (const TokenRange& run : {own.first, own.second})
        for (std::int64_t pick = run.first * 2; pick < (run.first + run.count) * 2; ++pick)
          drops.push_back(whole.places[static_cast<std::size_t>(sequence * 8 + pick)] < 0);
    return drops;
  };
  for (const ContextTokens& own : {ContextTokens{.first = {0, 1}, .second = {3, 1}}, ContextTokens{.first = {1, 2}},
                                   ContextTokens{.first = {2, 2}}})
    CHECK(dropped(own) == expected(own));
  // A slice does not know the tokens behind it.
  Indices known = kPicks;
  for (const std::size_t first : {4UL, 12UL}) std::fill_n(known.begin() + static_cast<std::ptrdiff_t>(first), 4, -1);
  CHECK(placed_picks(known, {.first = {0, 2}}, size) == placed_picks(kPicks, {.first = {0, 2}}, size));
}

TEST_CASE(
    "blocks of tokens that different ranks route drop together what one rank drops, and each has rows of its own") {
  RouteSize size = kSize;
  size.capacity = 2;
  // Each of two blocks of four tokens has one sequence.
  CHECK(placed_picks(kPicks, {.first = {0, 4}}, {0, 4}, size) ==
        Placed{{0, 2, 1, 4, 3, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}, {2, 2, 1}});
  CHECK(placed_picks(kPicks, {.first = {0, 4}}, {4, 4}, size) ==
        Placed{{-1, -1, -1, -1, -1, -1, -1, -1, 4, 0, 5, 2, -1, 1, 3, -1}, {2, 2, 2}});
}

TEST_CASE("loads count all picks of a sequence, and spread picks are those of whole sequences") {
  Indices loads(6);
  count_loads(loads, kPicks, kSize);
  CHECK(loads == Indices{4, 3, 1, 2, 2, 4});
  Indices whole(16, -1);
  spread_picks(whole, Indices{0, 1, 0, 1, 2, 0, 1, 2}, {.first = {0, 1}, .second = {3, 1}}, kSize);
  CHECK(whole == Indices{0, 1, -1, -1, -1, -1, 0, 1, 2, 0, -1, -1, -1, -1, 1, 2});
}

}  // namespace plumb::test
