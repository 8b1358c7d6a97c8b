#include "kernels/simt/attention/attention_tiles.h"

#include <doctest/doctest.h>

#include "kernels/simt/attention/warp_key_value_gradient.h"
#include "kernels/simt/attention/warp_query_gradient.h"

namespace plumb::test {
namespace {

struct Channels {
  int of_keys, of_values;
  bool drop;
  bool operator==(const Channels&) const = default;
};

/// Returns the channels of the body that takes the heads; none: the vector units do.
Channels body_for(const AttentionSize& size) {
  Channels taken{0, 0, false};
  simt::on_tensor_cores<Bf16>(size, [&]<int kChannels, int kValueChannels, bool kDrops>() {
    taken = {kChannels, kValueChannels, kDrops};
  });
  return taken;
}

template <int kChannels, int kValueChannels, bool kDrops>
void check_shared_bytes() {
  constexpr std::int64_t kMost = 99 << 10;  // of a block on compute capability 8.6
  CHECK(simt::WarpAttentionForward<Bf16, kChannels, kValueChannels, kDrops>::kSharedBytes <= kMost);
  CHECK(simt::WarpAttentionQueryGradient<Bf16, kChannels, kValueChannels, kDrops>::kSharedBytes <= kMost);
  CHECK(simt::WarpAttentionKeyValueGradient<Bf16, kChannels, kValueChannels, kDrops>::kSharedBytes <= kMost);
}

}  // namespace

TEST_CASE("a head goes to the tensor cores' body with the fewest channels that hold it") {
  CHECK(body_for({.head_size = 8}) == Channels{64, 64, false});
  CHECK(body_for({.head_size = 64}) == Channels{64, 64, false});
  CHECK(body_for({.head_size = 72}) == Channels{128, 128, false});
  CHECK(body_for({.head_size = 192}) == Channels{256, 256, false});
  CHECK(body_for({.head_size = 256, .dropout = {.probability = 0.1}}) == Channels{256, 256, true});
  CHECK(body_for({.head_size = 192, .value_size = 128}) == Channels{192, 128, false});
  CHECK(body_for({.head_size = 64, .value_size = 32}) == Channels{192, 128, false});
}

TEST_CASE("tensor cores take channels in pieces of 16 bytes, without bounds of scores") {
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 12}));
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 264}));
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 64, .softcap = 50}));
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 64, .value_size = 36}));
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 128, .value_size = 136}));
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 256, .value_size = 128}));
}

TEST_CASE("the tiles of every body fit in the shared memory that a block may have on any GPU with tensor cores") {
  check_shared_bytes<64, 64, false>();
  check_shared_bytes<64, 64, true>();
  check_shared_bytes<128, 128, false>();
  check_shared_bytes<128, 128, true>();
  check_shared_bytes<192, 128, false>();
  check_shared_bytes<192, 128, true>();
  check_shared_bytes<256, 256, false>();
  check_shared_bytes<256, 256, true>();
}

}  // namespace plumb::test
