#include "kernels/simt/attention/attention_tiles.h"

#include <doctest/doctest.h>

#include "kernels/simt/attention/warp_key_value_gradient.h"
#include "kernels/simt/attention/warp_query_gradient.h"

namespace plumb::test {
namespace {

using simt::Scores;

struct Channels {
  int of_keys, of_values;
  simt::Scores scores;
  bool operator==(const Channels&) const = default;
};

/// Returns the channels of the body that takes the heads; none: the vector units do.
Channels body_for(const AttentionSize& size) {
  Channels taken{0, 0, Scores::kPlain};
  simt::on_tensor_cores<Bf16>(size, [&]<int kChannels, int kValueChannels, simt::Scores kScores>() {
    taken = {kChannels, kValueChannels, kScores};
  });
  return taken;
}

template <int kChannels, int kValueChannels>
void check_shared_bytes() {
  const auto check = []<Scores kScores>() {
    constexpr std::int64_t kMost = 99 << 10;  // of a block on compute capability 8.6
    CHECK(simt::WarpAttentionForward<Bf16, kChannels, kValueChannels, kScores>::kSharedBytes <= kMost);
    CHECK(simt::WarpAttentionQueryGradient<Bf16, kChannels, kValueChannels, kScores>::kSharedBytes <= kMost);
    CHECK(simt::WarpAttentionKeyValueGradient<Bf16, kChannels, kValueChannels, kScores>::kSharedBytes <= kMost);
  };
  check.template operator()<Scores::kPlain>();
  check.template operator()<Scores::kDropped>();
  check.template operator()<Scores::kBounded>();
}

}  // namespace

TEST_CASE("a head goes to the tensor cores' body with the fewest channels that hold it") {
  CHECK(body_for({.head_size = 8}) == Channels{64, 64, Scores::kPlain});
  CHECK(body_for({.head_size = 64}) == Channels{64, 64, Scores::kPlain});
  CHECK(body_for({.head_size = 72}) == Channels{128, 128, Scores::kPlain});
  CHECK(body_for({.head_size = 192}) == Channels{256, 256, Scores::kPlain});
  CHECK(body_for({.head_size = 256, .dropout = {.probability = 0.1}}) == Channels{256, 256, Scores::kDropped});
  CHECK(body_for({.head_size = 256, .softcap = 50}) == Channels{256, 256, Scores::kBounded});
  CHECK(body_for({.head_size = 192, .value_size = 128}) == Channels{192, 128, Scores::kPlain});
  CHECK(body_for({.head_size = 64, .value_size = 32}) == Channels{192, 128, Scores::kPlain});
}

TEST_CASE("tensor cores take channels in pieces of 16 bytes, and no bounds of scores with dropout") {
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 12}));
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 264}));
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 64, .dropout = {.probability = 0.1}, .softcap = 50}));
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 64, .value_size = 36}));
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 128, .value_size = 136}));
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 256, .value_size = 128}));
}

TEST_CASE("the tiles of every body fit in the shared memory that a block may have on any GPU with tensor cores") {
  check_shared_bytes<64, 64>();
  check_shared_bytes<128, 128>();
  check_shared_bytes<192, 128>();
  check_shared_bytes<256, 256>();
}

}  // namespace plumb::test
