#pragma once
// The heads that attention on tensor cores takes, and the tiles that it has for them.
//
// A body is compiled for a number of channels of queries and keys, and for one of values. A head with fewer channels is
// filled up with zeros in shared memory. Most models have heads of one width. Those of latent attention have two
// (DeepSeek-AI 2024, "DeepSeek-V2": 192 and 128), which have a body of their own, since a body of two widths needs more
// registers for addresses.

#include <cstdint>

#include "kernels/cpu/attention/attention.h"
#include "kernels/simt/simt.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Rows of the tiles. They are as many as a lane's 255 registers have room for without spills, and as 99 KiB have of
/// shared memory, the least that a block may have on compute capabilities from 8.0 on (CUDA C++ Programming Guide,
/// "Compute Capabilities").
struct AttentionTiles {
  // Forward: tiles of 16 queries that a warp has, and keys of a tile.
  int row_tiles, keys;
  // Gradient of queries.
  int gradient_row_tiles, gradient_keys;
  // Gradients of keys and values: queries of a tile. If they are divided, a warp has the keys' gradient or the values'
  // alone, since both together would need more registers than there are.
  int gradient_queries;
  bool is_divided;
};

/// Says what a body does with scores besides their softmax.
enum class Scores : std::uint8_t {
  kPlain,
  kDropped,  ///< dropout of the probabilities
  kBounded   ///< tanh bounds the scores (softcap.h)
};

/// channels: of queries and keys, 64, 128, 192 or 256
constexpr AttentionTiles attention_tiles(int channels, Scores scores) {
  const bool drops = scores == Scores::kDropped;
  if (channels <= 64) return {2, drops ? 32 : 64, 2, 32, drops ? 32 : 64, false};
  if (channels <= 128) return {2, 32, 2, 16, drops ? 16 : 32, false};
  if (channels <= 192) return {2, 32, 1, 32, scores == Scores::kPlain ? 32 : 16, true};
  return {1, 32, 1, 16, 16, true};
}

/// True if the bodies for tensor cores take the size. Bounded scores with dropout go to the vector units.
PLUMB_SIMT bool fits_tensor_cores(const AttentionSize& size) {
  constexpr int kPiece = 8;  // numbers of 16 bits that are copied together
  const std::int64_t channels = size.head_size, of_values = size.value_channels();
  if (size.softcap != 0 && size.dropout.probability > 0) return false;
  if (channels % kPiece != 0 || of_values % kPiece != 0) return false;
  return channels == of_values ? channels <= 256 : channels <= 192 && of_values <= 128;
}

/// Calls run<kChannels, kValueChannels, kScores>() for the bodies that take the size, and returns true, if tensor cores
/// take the format and the heads.
template <class S, class Run>
bool on_tensor_cores(const AttentionSize& size, const Run& run) {
  if constexpr (sizeof(S) == 2) {
    if (!fits_tensor_cores(size)) return false;
    const auto run_for = [&]<int kChannels, int kValueChannels>() {
      if (size.softcap != 0)
        run.template operator()<kChannels, kValueChannels, Scores::kBounded>();
      else if (size.dropout.probability > 0)
        run.template operator()<kChannels, kValueChannels, Scores::kDropped>();
      else
        run.template operator()<kChannels, kValueChannels, Scores::kPlain>();
    };
    if (size.value_channels() != size.head_size)
      run_for.template operator()<192, 128>();
    else if (size.head_size <= 64)
      run_for.template operator()<64, 64>();
    else if (size.head_size <= 128)
      run_for.template operator()<128, 128>();
    else
      run_for.template operator()<256, 256>();
    return true;
  } else {
    return false;
  }
}

}}}  // namespace plumb::kernels::simt
