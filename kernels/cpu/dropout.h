#pragma once
// Dropout (Srivastava et al. 2014) with a mask that is never stored. A hash of an element's identity (seed, step,
// layer, place in the layer, sample, token, channel) decides if it is dropped, so the backward and a recomputation draw
// the same mask again, and no layout changes it. KernelKind kDropout.

#include <cstdint>

#include "kernels/counter_random.h"

namespace plumb { inline namespace kernels {

/// Identifies one use of dropout.
struct DropoutKey {
  std::uint64_t seed = 1;
  std::uint64_t step = 0;
  std::uint64_t layer = 0;  ///< number of the layer in the model
  std::uint64_t place = 0;  ///< number of the dropout in the layer
};

/// The rows of a tensor: `count` samples of `tokens` rows each.
struct DropoutRows {
  std::int64_t first_sample = 0;  ///< index in the global batch
  std::int64_t count = 0;         ///< samples
  std::int64_t first_token = 0;   ///< index in its sequence
  std::int64_t tokens = 1;        ///< tokens of each sample
  std::int64_t columns = 0;
  std::int64_t first_column = 0;  ///< nonzero where the tensor holds a share of the columns
};

inline constexpr std::uint64_t kDropoutStream = 3;  ///< initial weights draw from stream 1, the data from 2

/// True if a hash drops with this probability: its upper 24 bits as a fraction are below it.
constexpr bool drops(std::uint64_t bits, float probability) {
  return static_cast<float>(bits >> 40) * (1.0F / 16777216.0F) < probability;
}

/// y = x / (1 - probability) where an element stays, 0 where it is dropped; y may be x. x, y: [count * tokens, columns]
void dropout(float* y, const float* x, const DropoutKey& key, const DropoutRows& rows, double probability);

/// Dropout of attention probabilities: the mask of a probability is a hash of its sample, head, query and key.
struct AttentionDropout {
  double probability = 0;
  DropoutKey key;
  std::int64_t first_sample = 0;  ///< index, in the global batch, of the first sequence
  std::int64_t first_head = 0;    ///< index, in the layer, of the first head
};

/// Drops in one row of probabilities, from `query` (a token's place in its sequence) to the keys [first_key, first_key
/// + count): y = x / (1 - probability) or 0; y may be x. `sequence` and `head` count from first_sample and first_head.
/// x, y: [count]
void drop_probabilities(float* y, const float* x, const AttentionDropout& dropout, std::int64_t sequence,
                        std::int64_t head, std::int64_t query, std::int64_t first_key, std::int64_t count);

}}  // namespace plumb::kernels
