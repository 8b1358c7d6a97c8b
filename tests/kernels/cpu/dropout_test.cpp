#include "kernels/cpu/dropout.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {

Values dropped(const DropoutKey& key, const DropoutRows& rows, double probability) {
  Values x(static_cast<std::size_t>(rows.count * rows.tokens * rows.columns), 1.0F);
  dropout(x.data(), x.data(), key, rows, probability);
  return x;
}

}  // namespace

TEST_CASE("dropout keeps its share of the elements and scales them so that the mean stays") {
  const Values y = dropped({.seed = 5}, {.count = 40, .tokens = 25, .columns = 100}, 0.3);
  const auto kept = static_cast<double>(std::ranges::count_if(y, [](float value) { return value != 0; }));
  // The standard deviation of the share over 100 000 draws is 0.0015; five of them are allowed.
  CHECK(std::abs(kept / 100000 - 0.7) < 0.0075);
  for (const float value : y) CHECK((value == 0.0F || value == doctest::Approx(1 / 0.7F)));
}

TEST_CASE("an element's mask depends on what it is, not on who computes it") {
  const DropoutKey key{.seed = 3, .step = 2, .layer = 4, .place = 1};
  const DropoutRows whole{.first_sample = 6, .count = 2, .tokens = 5, .columns = 8};
  const Values all = dropped(key, whole, 0.5);
  SUBCASE("a slice of a sequence draws its part") {
    const Values slice =
        dropped(key, {.first_sample = 7, .count = 1, .first_token = 3, .tokens = 2, .columns = 8}, 0.5);
    CHECK(slice == Values(all.begin() + (5 + 3) * 8, all.end()));
  }
  SUBCASE("a share of the columns draws its part") {
    const Values share =
        dropped(key, {.first_sample = 6, .count = 1, .tokens = 1, .columns = 3, .first_column = 4}, 0.5);
    CHECK(share == Values(all.begin() + 4, all.begin() + 7));
  }
  SUBCASE("drawn again it is the same, and of another step, layer, place or seed another") {
    CHECK(dropped(key, whole, 0.5) == all);
    CHECK(dropped({.seed = 3, .step = 3, .layer = 4, .place = 1}, whole, 0.5) != all);
    CHECK(dropped({.seed = 3, .step = 2, .layer = 5, .place = 1}, whole, 0.5) != all);
    CHECK(dropped({.seed = 3, .step = 2, .layer = 4, .place = 2}, whole, 0.5) != all);
    CHECK(dropped({.seed = 4, .step = 2, .layer = 4, .place = 1}, whole, 0.5) != all);
  }
}

TEST_CASE("a probability's mask depends on its sample, head, query and key, not on who computes it") {
  const AttentionDropout all{.probability = 0.5, .key = {.seed = 2, .layer = 3}};
  const Values ones(64, 1.0F);
  const auto row = [&](const AttentionDropout& dropout, std::int64_t sequence, std::int64_t head, std::int64_t query,
                       std::int64_t first_key, std::int64_t keys) {
    Values y(static_cast<std::size_t>(keys));
    drop_probabilities(y.data(), ones.data(), dropout, sequence, head, query, first_key, keys);
    return y;
  };
  const Values whole = row(all, 1, 2, 40, 0, 41);
  CHECK(row(all, 1, 2, 40, 30, 11) == Values(whole.begin() + 30, whole.end()));
  AttentionDropout share = all;
  share.first_sample = 1;
  share.first_head = 2;
  CHECK(row(share, 0, 0, 40, 0, 41) == whole);
  CHECK(row(all, 0, 2, 40, 0, 41) != whole);
  CHECK(row(all, 1, 1, 40, 0, 41) != whole);
  CHECK(row(all, 1, 2, 39, 0, 41) != whole);
  for (const float value : whole) CHECK((value == 0.0F || value == 2.0F));
}

}  // namespace plumb::test
