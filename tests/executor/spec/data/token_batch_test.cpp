#include "executor/spec/data/token_batch.h"

#include <doctest/doctest.h>

#include <set>

namespace plumb::test {
namespace {
std::vector<std::uint8_t> counting_text() {
  std::vector<std::uint8_t> text(200);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::uint8_t>(i);
  return text;
}

std::vector<std::int32_t> inputs(const BatchPlace& place) {
  const std::int64_t tokens_each = place.slice.count > 0 ? place.slice.count : place.sequence;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(place.count * tokens_each));
  fill_inputs(tokens, counting_text(), place);
  return tokens;
}
}  // namespace

TEST_CASE("a target is the token behind its input") {
  const BatchPlace place{.seed = 3, .step = 2, .first_sample = 5, .count = 4, .sequence = 6};
  std::vector<std::int32_t> targets(24);
  fill_targets(targets, counting_text(), place);
  const std::vector<std::int32_t> tokens = inputs(place);
  for (std::size_t i = 0; i < 24; ++i) CHECK(targets[i] == tokens[i] + 1);
}

TEST_CASE("a sample is the same whatever batch it is cut in") {
  const std::vector<std::int32_t> whole = inputs({.count = 4, .sequence = 6});
  for (std::int64_t sample = 0; sample < 4; ++sample) {
    const std::vector<std::int32_t> alone = inputs({.first_sample = sample, .sequence = 6});
    CHECK(std::equal(alone.begin(), alone.end(), whole.begin() + 6 * sample));
  }
}

TEST_CASE("seed, step and sample each choose another place in the text") {
  std::set<std::int32_t> firsts;
  for (std::uint64_t seed : {1, 2})
    for (std::int64_t step : {0, 1})
      for (std::int64_t sample : {0, 1})
        firsts.insert(inputs({.seed = seed, .step = step, .first_sample = sample, .sequence = 1})[0]);
  CHECK(firsts.size() >= 7);  // there are 199 places, and two of eight draws may meet once
}

TEST_CASE("a text one longer than a sequence has one place, the first") {
  std::vector<std::int32_t> tokens(199);
  fill_inputs(tokens, counting_text(), {.sequence = 199});
  CHECK(tokens.front() == 0);
  CHECK(tokens.back() == 198);
}

TEST_CASE("the slices of a batch, sequence by sequence, are the batch") {
  BatchPlace place{.seed = 3, .step = 2, .first_sample = 5, .count = 2, .sequence = 7};
  const std::vector<std::int32_t> whole = inputs(place);
  for (const int slices : {1, 2, 3, 7}) {
    std::int64_t next = 0;
    for (int slice = 0; slice < slices; ++slice) {
      place.slice = slice_tokens(7, slices, slice);
      CHECK(place.slice.first == next);
      next += place.slice.count;
      const std::vector<std::int32_t> part = inputs(place);
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t t = 0; t < place.slice.count; ++t)
          CHECK(part[b * place.slice.count + t] == whole[b * 7 + place.slice.first + t]);
    }
    CHECK(next == 7);
  }
}

}  // namespace plumb::test
