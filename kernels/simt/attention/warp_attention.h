#pragma once
// Causal attention on tensor cores, for 16-bit tensors (kernels/cpu/attention/attention.h has shapes and layout). A
// block takes a tile of queries, whose rows its warps divide, and goes over the keys that they see, tile by tile, with
// an online softmax in registers (Dao 2023, "FlashAttention-2", algorithm 1). Probabilities are rounded to S before
// they weigh the values; sums are in fp32. The next tile of keys and values is copied while the current one is worked
// on.
//
// Keys and values stand beside the queries or, for the queries of a slice, in a tensor that keeps those of whole
// sequences.
//
// It is tested on the host, lane by lane (kernels/simt/warp.h). kernels/simt/attention/warp_attention_backward.h has
// the backward.

#include "kernels/simt/attention/attention_block.h"
#include "kernels/simt/warp_tiles.h"

namespace plumb { inline namespace kernels { namespace simt {

inline constexpr float kLog2E = 1.4426950408889634F;
inline constexpr float kLn2 = 0.6931471805599453F;

/// True if the bodies for tensor cores take the size: heads in tiles of 64 or 128 channels, no dropout of
/// probabilities.
PLUMB_SIMT bool fits_tensor_cores(const AttentionSize& size) {
  return size.head_size <= 128 && size.head_size % 8 == 0 && !(size.dropout.probability > 0);
}

PLUMB_SIMT std::int64_t tiles_of(std::int64_t rows, std::int64_t tile) {
  return (rows + tile - 1) / tile;
}

/// to[c] := scale * sums, for a lane's columns and its row among the upper (half 0) or lower (half 1) eight.
template <int kChannels, class S, class Sums>
PLUMB_SIMT void store_row(S* to, Sums (&sums)[kChannels / 8], int lane, int half, float scale, std::int64_t channels) {
  PLUMB_UNROLL for (int c = 0; c < kChannels / 8; ++c) {
    const int channel = 8 * c + column_of_sum(lane, 0);
    const FragmentSums& own = sums[c].of(lane);
    if (channel < channels) store_pair(to + channel, scale * own.sum[2 * half], scale * own.sum[2 * half + 1]);
  }
}

/// Keys and values beside the queries, for the same tokens: in qkv [b*s, (a+2k)*d].
template <class S>
struct OwnKeys {
  using Gradient = S;

  /// Returns the tokens of each sequence before the queries' first.
  PLUMB_SIMT std::int64_t before() const { return 0; }
  PLUMB_SIMT const S* base(const S* qkv) const { return qkv; }
  PLUMB_SIMT std::int64_t width(const AttentionRows& rows) const { return rows.width(); }
  PLUMB_SIMT std::int64_t key(const AttentionRows& rows, std::int64_t batch, std::int64_t token,
                              std::int64_t kv) const {
    return rows.key(batch * rows.size.sequence + token, kv);
  }
  PLUMB_SIMT std::int64_t value(const AttentionRows& rows, std::int64_t batch, std::int64_t token,
                                std::int64_t kv) const {
    return rows.value(batch * rows.size.sequence + token, kv);
  }
};

/// Keys and values of whole sequences, of which the queries are a slice; their gradients are added up in fp32.
template <class S>
struct KeptKeys {
  using Gradient = float;

  const S* keys_values = nullptr;  ///< [b*s, 2k*d]
  std::int64_t first = 0;          ///< tokens of each sequence before the slice
  std::int64_t sequence = 0;       ///< s

  PLUMB_SIMT std::int64_t before() const { return first; }
  PLUMB_SIMT const S* base(const S*) const { return keys_values; }
  PLUMB_SIMT std::int64_t width(const AttentionRows& rows) const {
    return 2 * rows.size.kv_heads * rows.size.head_size;
  }
  PLUMB_SIMT std::int64_t key(const AttentionRows& rows, std::int64_t batch, std::int64_t token,
                              std::int64_t kv) const {
    return AttentionBlockRows{rows.size}.key(batch * sequence + token, kv);
  }
  PLUMB_SIMT std::int64_t value(const AttentionRows& rows, std::int64_t batch, std::int64_t token,
                                std::int64_t kv) const {
    return AttentionBlockRows{rows.size}.value(batch * sequence + token, kv);
  }
};

/// Says which queries of a tile see which of its keys, counted from the tile's first ones. `before`: tokens of each
/// sequence before the first query.
class TileMask {
 public:
  PLUMB_SIMT TileMask(const AttentionSize& size, std::int64_t before, std::int64_t first_query, std::int64_t first_key)
      : ahead_(static_cast<int>(before + first_query - first_key)),
        window_(static_cast<int>(size.window > 0 ? size.window : before + size.sequence)),
        queries_(static_cast<int>(size.sequence - first_query)) {}

  PLUMB_SIMT bool sees(int query, int key) const {
    const int back = ahead_ + query - key;
    return back >= 0 && back < window_ && query < queries_;
  }
  PLUMB_SIMT bool sees_all(int queries, int keys) const {
    return ahead_ + 1 >= keys && ahead_ + queries - 1 < window_ && queries <= queries_;
  }

 private:
  int ahead_;    // the first query's distance behind the first key
  int window_;   // keys that a query sees, itself included
  int queries_;  // queries from the tile's first one to the sequence's end
};

/// The tile of rows, the head and the sequence of an item.
struct AttentionItem {
  std::int64_t batch, head, tile;
};
PLUMB_SIMT AttentionItem attention_item(std::int64_t item, std::int64_t batch, std::int64_t heads) {
  return {item % (batch * heads) / heads, item % heads, item / (batch * heads)};
}

/// attention_forward on tensor cores. Shapes of output, log_sum_exp and qkv: attention_forward's.
template <class S, int kChannels, class Keys = OwnKeys<S>>
struct WarpAttentionForward {
  static constexpr int kWarps = 4;
  static constexpr int kRowTiles = 2;  // tiles of 16 queries for each warp
  static constexpr int kQueries = kWarps * kRowTiles * 16;
  static constexpr int kKeys = 64;
  static constexpr std::int64_t kSharedBytes = std::int64_t{kQueries + 4 * kKeys} * kChannels * 2;

  S* output;
  float* log_sum_exp;
  const S* qkv;
  AttentionSize size;
  Keys keys = {};

  std::int64_t items() const { return size.batch * size.heads * tiles_of(size.sequence, kQueries); }

  template <class Block>
  PLUMB_SIMT void operator()(const Block& block) const {
    const std::int64_t all = size.batch * size.heads * tiles_of(size.sequence, kQueries);
    for (std::int64_t item = block.block(); item < all; item += block.blocks())
      attend(block, attention_item(all - 1 - item, size.batch, size.heads));  // the tiles with the most keys first
  }

 private:
  using Tile = SharedTile<S, kChannels>;

  template <class Warp>
  struct State {
    typename Warp::template PerLane<FragmentSums> output[kRowTiles][kChannels / 8];
    typename Warp::template PerLane<float> largest[kRowTiles][2], total[kRowTiles][2];  // statistics of a lane's rows
  };

  template <class Block>
  PLUMB_SIMT void attend(const Block& block, const AttentionItem& item) const {
    using Warp = typename Block::Warp;
    const AttentionRows rows{size};
    const std::int64_t first_row = item.batch * size.sequence, kv = rows.kv_head(item.head);
    const std::int64_t first_query = item.tile * kQueries;
    const std::int64_t queries_there = smaller(kQueries, size.sequence - first_query);
    const std::int64_t first_tile = rows.first_key(keys.before() + first_query) / kKeys;
    const std::int64_t end_tile = tiles_of(keys.before() + first_query + queries_there, kKeys);
    S* shared = reinterpret_cast<S*>(block.shared());
    const Tile queries{shared};
    const auto keys_in = [&](std::int64_t tile) {
      return Tile{shared + (kQueries + tile % 2 * 2 * kKeys) * kChannels};
    };
    const auto values_in = [&](std::int64_t tile) { return Tile{keys_in(tile).first + kKeys * kChannels}; };
    const auto start_keys = [&](std::int64_t tile) {
      const std::int64_t key = tile * kKeys, there = keys.before() + size.sequence - key;
      const S* base = keys.base(qkv);
      start_tile<kKeys, kWarps>(block, keys_in(tile),
                                {base + keys.key(rows, item.batch, key, kv), keys.width(rows), there}, size.head_size);
      start_tile<kKeys, kWarps>(block, values_in(tile),
                                {base + keys.value(rows, item.batch, key, kv), keys.width(rows), there},
                                size.head_size);
    };

    start_tile<kQueries, kWarps>(block, queries,
                                 {qkv + rows.query(first_row + first_query, item.head), rows.width(), queries_there},
                                 size.head_size);
    start_keys(first_tile);
    typename Block::template PerWarp<State<Warp>> states;
    block.each_warp([&](const auto& warp) { begin(warp, block.of(states, warp)); });
    for (std::int64_t tile = first_tile; tile < end_tile; ++tile) {
      block.settle_copies();
      block.sync();  // the tile is there, and no warp reads the one before any more
      if (tile + 1 < end_tile) start_keys(tile + 1);
      block.each_warp([&](const auto& warp) {
        add_tile(warp, block.of(states, warp), queries, keys_in(tile), values_in(tile), first_query, tile * kKeys);
      });
    }
    block.each_warp([&](const auto& warp) { end(warp, block.of(states, warp), item, first_query); });
    block.sync();  // before the next item's copies
  }

  template <class Warp>
  PLUMB_SIMT void begin(const Warp& warp, State<Warp>& own) const {
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) {
        PLUMB_UNROLL for (int c = 0; c < kChannels / 8; ++c) own.output[r][c].of(lane) = FragmentSums{};
        PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
          own.largest[r][half].of(lane) = -INFINITY;
          own.total[r][half].of(lane) = 0;
        }
      }
    });
  }

  template <class Warp>
  PLUMB_SIMT void add_tile(const Warp& warp, State<Warp>& own, const Tile& queries, const Tile& keys_of_tile,
                           const Tile& values, std::int64_t first_query, std::int64_t first_key) const {
    typename Warp::template PerLane<FragmentSums> scores[kRowTiles][kKeys / 8];
    const int row = warp.index() * kRowTiles * 16;
    products_of_rows(warp, scores, queries, row, keys_of_tile);
    const AttentionRows rows{size};
    const TileMask mask(size, keys.before(), first_query + row, first_key);
    if (!mask.sees_all(kRowTiles * 16, kKeys)) {
      warp.each_lane([&](int lane) {
        PLUMB_UNROLL
        for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL
        for (int c = 0; c < kKeys / 8; ++c) PLUMB_UNROLL
        for (int i = 0; i < 4; ++i)
          if (!mask.sees(16 * r + row_of_sum(lane, i), 8 * c + column_of_sum(lane, i)))
            scores[r][c].of(lane).sum[i] = -INFINITY;
      });
    }
    const float factor = rows.scale() * kLog2E;
    PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
      typename Warp::template PerLane<float> most = own.largest[r][half];
      warp.each_lane([&](int lane) {
        PLUMB_UNROLL for (int c = 0; c < kKeys / 8; ++c) PLUMB_UNROLL for (int i = 2 * half; i < 2 * half + 2; ++i)
            most.of(lane) = fmaxf(most.of(lane), scores[r][c].of(lane).sum[i]);
      });
      combine_over_row(warp, most, Larger{});
      warp.each_lane([&](int lane) {
        // A row that has seen no key yet has nothing to shrink, and adds nothing.
        const float base = most.of(lane) == -INFINITY ? 0.0F : most.of(lane) * factor;
        const float shrink = exp2f(own.largest[r][half].of(lane) * factor - base);
        float total = own.total[r][half].of(lane) * shrink;
        PLUMB_UNROLL for (int c = 0; c < kKeys / 8; ++c) PLUMB_UNROLL for (int i = 2 * half; i < 2 * half + 2; ++i) {
          float& score = scores[r][c].of(lane).sum[i];
          score = exp2f(score * factor - base);
          total += score;
        }
        PLUMB_UNROLL for (int c = 0; c < kChannels / 8; ++c) PLUMB_UNROLL for (int i = 2 * half; i < 2 * half + 2; ++i)
            own.output[r][c]
                .of(lane)
                .sum[i] *= shrink;
        own.total[r][half].of(lane) = total;
        own.largest[r][half].of(lane) = most.of(lane);
      });
    }
    add_weighted_tile(warp, own.output, scores, values);
  }

  template <class Warp>
  PLUMB_SIMT void end(const Warp& warp, State<Warp>& own, const AttentionItem& item, std::int64_t first_query) const {
    const AttentionRows rows{size};
    const std::int64_t row = first_query + warp.index() * kRowTiles * 16;
    PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
      combine_over_row(warp, own.total[r][half], Add{});
      warp.each_lane([&](int lane) {
        const std::int64_t query = row + 16 * r + row_of_sum(lane, 2 * half);
        if (query >= size.sequence) return;
        const float total = own.total[r][half].of(lane);
        store_row<kChannels>(output + rows.output(item.batch * size.sequence + query, item.head), own.output[r], lane,
                             half, 1 / total, size.head_size);
        if (lane % 4 == 0)
          log_sum_exp[rows.statistic(item.batch, item.head, query)] =
              own.largest[r][half].of(lane) * rows.scale() + logf(total);
      });
    }
  }
};

}}}  // namespace plumb::kernels::simt
