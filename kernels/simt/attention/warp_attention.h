#pragma once
// Causal attention on tensor cores, for 16-bit tensors (kernels/cpu/attention/attention.h has shapes and layout). A
// block takes a tile of queries, whose rows its warps divide, and goes over the keys that they see, tile by tile, with
// an online softmax in registers (Dao 2023, "FlashAttention-2", algorithm 1). Probabilities are rounded to S before
// they weigh the values; sums are in fp32. The next tile of keys and values is copied while the current one is worked
// on.
//
// It is tested on the host, lane by lane (kernels/simt/warp.h). warp_query_gradient.h and warp_key_value_gradient.h have
// the backward.

#include "kernels/simt/attention/attention_tiles.h"
#include "kernels/simt/attention/sinks.h"
#include "kernels/simt/exponential.h"
#include "kernels/simt/warp_tiles.h"

namespace plumb { inline namespace kernels { namespace simt {

PLUMB_SIMT std::int64_t tiles_of(std::int64_t rows, std::int64_t tile) {
  return (rows + tile - 1) / tile;
}

/// Ends a lane's row among the upper (half 0) or lower (half 1) eight with keep * its earlier sums + add * `sums`, for
/// the lane's columns.
template <int kChannels, class S, class Sums, int kSums>
PLUMB_SIMT void end_row(const RowEnd<S>& end, Sums (&sums)[kSums], int lane, int half, float keep, float add,
                        int channels) {
  PLUMB_UNROLL for (int c = 0; c < kChannels / 8; ++c) {
    const int channel = 8 * c + column_of_sum(lane, 0);
    if (channel >= channels) continue;
    const FragmentSums& own = sums[c].of(lane);
    float low = add * own.sum[2 * half], high = add * own.sum[2 * half + 1];
    if (end.sums == nullptr) {
      store_pair(end.to + channel, low, high);
      continue;
    }
    if (end.adds) {
      low += keep * end.sums[channel];
      high += keep * end.sums[channel + 1];
    }
    end.sums[channel] = low;
    end.sums[channel + 1] = high;
    if (end.to != nullptr) store_pair(end.to + channel, low, high);
  }
}

/// Says which queries of a tile see which of its keys, counted from the tile's first ones.
class TileMask {
 public:
  PLUMB_SIMT TileMask(const AttentionBlock& block, int first_query, int first_key)
      : queries_(in_32_bits(block.size.sequence) - first_query),
        keys_(in_32_bits(block.rows_of_keys()) - first_key),
        query_jump_(block.queries, first_query),
        key_jump_(block.keys, first_key),
        ahead_(static_cast<int>(block.queries.first - block.keys.first) + first_query + query_jump_.past() - first_key -
               key_jump_.past()),
        window_(static_cast<int>(block.size.window)) {}

  PLUMB_SIMT bool sees(int query, int key) const {
    const int behind = back(query, key);
    return behind >= 0 && (window_ == 0 || behind < window_) && query < queries_ && key < keys_;
  }
  PLUMB_SIMT bool sees_all(int queries, int keys) const {
    return queries <= queries_ && keys <= keys_ && back(0, keys - 1) >= 0 &&
           (window_ == 0 || back(queries - 1, 0) < window_);
  }

 private:
  /// The rows of a tile from `row` on belong to the second run, and are `tokens` further than their number says.
  struct Jump {
    int row, tokens;

    PLUMB_SIMT Jump(const RunsOfTokens& runs, int first_row)
        : row(static_cast<int>(runs.split) - first_row),
          tokens(static_cast<int>(runs.second - runs.first - runs.split)) {}
    /// Returns the tokens by which the tile's first row is further.
    PLUMB_SIMT int past() const { return row > 0 ? 0 : tokens; }
    PLUMB_SIMT int before(int other) const { return row > 0 && other >= row ? tokens : 0; }
  };

  /// Returns the tokens from a key to a query behind it.
  PLUMB_SIMT int back(int query, int key) const {
    return ahead_ + query + query_jump_.before(query) - key - key_jump_.before(key);
  }

  int queries_, keys_;  // from the tile's first ones to the last that there are
  Jump query_jump_, key_jump_;
  int ahead_;   // from the first key to the first query
  int window_;  // keys that a query sees, itself included; 0: all of its past
};

/// The tile of rows, the head and the sequence of an item.
struct AttentionItem {
  int batch, head, tile;
};
PLUMB_SIMT AttentionItem attention_item(std::int64_t item, std::int64_t batch, std::int64_t heads) {
  return {static_cast<int>(item % (batch * heads) / heads), static_cast<int>(item % heads),
          static_cast<int>(item / (batch * heads))};
}

/// The tiles of keys that a tile of queries sees.
struct KeyTiles {
  int first, end;
};
PLUMB_SIMT KeyTiles key_tiles(const AttentionBlock& block, int first_query, int queries, int keys) {
  return {static_cast<int>(block.first_key(block.queries.position(first_query)) / keys),
          static_cast<int>(tiles_of(block.keys_end(block.queries.position(first_query + queries - 1)), keys))};
}

/// The keys and the values of a sequence's head, those that any query sees.
template <class S, bool kOneWidth>
struct KeyValueRows {
  TensorRows<S> keys;
  int to_value;  ///< elements from a key to its value

  PLUMB_SIMT KeyValueRows(const AttentionView<S, kOneWidth>& of, std::int64_t batch, std::int64_t kv)
      : keys(rows_from(of.keys() + of.key(batch, 0, kv), of.key_width(), of.block.keys_seen())),
        to_value(in_32_bits(of.to_value(kv))) {}

  /// Starts the copy of a tile of keys and of their values. Rows that no query sees become zeros.
  template <int kKeys, int kWarps, class Block, int kChannels, int kValueChannels>
  PLUMB_SIMT void start(const Block& block, const SharedTile<S, kChannels>& to_keys,
                        const SharedTile<S, kValueChannels>& to_values, int first_key, int channels,
                        int value_channels) const {
    const S* first = keys.first + std::int64_t{first_key} * keys.stride;
    start_tile<kKeys, kWarps>(block, to_keys, {first, keys.stride, keys.there - first_key}, channels);
    start_tile<kKeys, kWarps>(block, to_values, {first + to_value, keys.stride, keys.there - first_key},
                              value_channels);
  }
};

/// Gives the scores of keys that a query does not see no weight. Rows are queries, or keys with `transposed`.
template <bool transposed = false, int kRowTiles, int kColumnTiles, class Warp>
PLUMB_SIMT void hide_unseen(const Warp& warp,
                            typename Warp::template PerLane<FragmentSums> (&scores)[kRowTiles][kColumnTiles],
                            const TileMask& mask) {
  constexpr int kRows = 16 * kRowTiles, kColumns = 8 * kColumnTiles;
  if (transposed ? mask.sees_all(kColumns, kRows) : mask.sees_all(kRows, kColumns)) return;
  warp.each_lane([&](int lane) {
    PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int c = 0; c < kColumnTiles; ++c)
        PLUMB_UNROLL for (int i = 0; i < 4; ++i) {
      const int row = 16 * r + row_of_sum(lane, i), column = 8 * c + column_of_sum(lane, i);
      if (!(transposed ? mask.sees(column, row) : mask.sees(row, column))) scores[r][c].of(lane).sum[i] = -INFINITY;
    }
  });
}

/// Replaces products of queries and keys by tanh(scale * product / softcap) if scores are bounded, by one power of two and
/// one reciprocal: tanh x = 1 - 2 / (1 + e^2x), to 2^-21 or so.
template <Scores kScores, int kRowTiles, int kColumnTiles, class Warp, class View>
PLUMB_SIMT void bound_scores(const Warp& warp,
                             typename Warp::template PerLane<FragmentSums> (&scores)[kRowTiles][kColumnTiles],
                             const View& of) {
  if constexpr (kScores == Scores::kBounded) {
    const float twice = 2 * kLog2E * of.scale() / of.size().softcap;
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int c = 0; c < kColumnTiles; ++c)
          PLUMB_UNROLL for (int i = 0; i < 4; ++i) {
        float& score = scores[r][c].of(lane).sum[i];
        score = 1 - 2 * reciprocal(1 + power_of_two(twice * score));
      }
    });
  }
}

/// Returns the factor from what bound_scores() leaves to scores.
template <Scores kScores, class View>
PLUMB_SIMT float score_factor(const View& of) {
  return kScores == Scores::kBounded ? of.size().softcap : of.scale();
}

/// Returns the derivative of a score at what bound_scores() has left, over that without a bound. An unseen key has none.
template <Scores kScores>
PLUMB_SIMT float score_slope(float bounded) {
  return kScores == Scores::kBounded ? fmaxf(1 - bounded * bounded, 0) : 1.0F;
}

/// AttentionForward (attention.h) on tensor cores.
template <class S, int kChannels, int kValueChannels, Scores kScores>
struct WarpAttentionForward {
  static constexpr int kWarps = 4;
  static constexpr AttentionTiles kTiles = attention_tiles(kChannels, kScores);
  static constexpr int kRowTiles = kTiles.row_tiles, kQueries = kWarps * kRowTiles * 16, kKeys = kTiles.keys;
  static constexpr int kKeyTile = kKeys * (kChannels + kValueChannels);  // numbers of a tile of keys and values
  static constexpr std::int64_t kSharedBytes = 2 * (std::int64_t{kQueries} * kChannels + 2 * kKeyTile);

  S* output;
  float* sums;
  float* log_sum_exp;
  AttentionView<S, kChannels == kValueChannels> of;

  std::int64_t items() const { return of.size().batch * of.size().heads * tiles_of(of.size().sequence, kQueries); }

  template <class Block>
  PLUMB_SIMT void operator()(const Block& block) const {
    const AttentionSize& size = of.size();
    const std::int64_t all = size.batch * size.heads * tiles_of(size.sequence, kQueries);
    for (std::int64_t item = block.block(); item < all; item += block.blocks())
      attend(block, attention_item(all - 1 - item, size.batch, size.heads));  // the tiles with the most keys first
  }

 private:
  using Tile = SharedTile<S, kChannels>;
  using ValueTile = SharedTile<S, kValueChannels>;

  template <class Warp>
  struct State {
    typename Warp::template PerLane<FragmentSums> output[kRowTiles][kValueChannels / 8];
    typename Warp::template PerLane<float> largest[kRowTiles][2], total[kRowTiles][2];  // statistics of a lane's rows
  };
  /// The log-sum-exp of a lane's rows before the block.
  template <class Warp>
  struct Before {
    typename Warp::template PerLane<float> log_sum_exp[kRowTiles][2];
  };

  template <class Block>
  PLUMB_SIMT void attend(const Block& block, const AttentionItem& item) const {
    using Warp = typename Block::Warp;
    const AttentionSize& size = of.size();
    const int channels = in_32_bits(size.head_size), value_channels = in_32_bits(of.value_channels());
    const int first_query = item.tile * kQueries;
    const int queries_there = smaller(kQueries, in_32_bits(size.sequence) - first_query);
    const KeyValueRows rows(of, item.batch, of.kv_head(item.head));
    const KeyTiles tiles = key_tiles(of.block, first_query, queries_there, kKeys);
    S* shared = reinterpret_cast<S*>(block.shared());
    const Tile queries{shared};
    const auto keys_in = [&](int tile) { return Tile{shared + kQueries * kChannels + tile % 2 * kKeyTile}; };
    const auto values_in = [&](int tile) { return ValueTile{keys_in(tile).first + kKeys * kChannels}; };
    const auto start_keys = [&](int tile) {
      rows.template start<kKeys, kWarps>(block, keys_in(tile), values_in(tile), tile * kKeys, channels, value_channels);
    };

    typename Block::template PerWarp<State<Warp>> states;
    block.each_warp([&](const auto& warp) { begin(warp, block.of(states, warp)); });
    if (tiles.first < tiles.end) {
      start_tile<kQueries, kWarps>(
          block, queries, rows_from(of.qkv + of.query(item.batch, first_query, item.head), of.width(), queries_there),
          channels);
      start_keys(tiles.first);
    }
    for (int tile = tiles.first; tile < tiles.end; ++tile) {
      block.settle_copies();
      block.sync();  // the tile is there, and no warp reads the one before any more
      if (tile + 1 < tiles.end) start_keys(tile + 1);
      block.each_warp([&](const auto& warp) {
        add_tile(warp, block.of(states, warp), queries, keys_in(tile), values_in(tile), item, first_query,
                 tile * kKeys);
      });
    }
    typename Block::template PerWarp<Before<Warp>> before;
    block.each_warp([&](const auto& warp) { look_back(warp, block.of(before, warp), item, first_query); });
    block.sync();  // before log-sum-exps are replaced, and before the next item's copies
    block.each_warp(
        [&](const auto& warp) { end(warp, block.of(states, warp), block.of(before, warp), item, first_query); });
  }

  template <class Warp>
  PLUMB_SIMT void begin(const Warp& warp, State<Warp>& own) const {
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) {
        PLUMB_UNROLL for (int c = 0; c < kValueChannels / 8; ++c) own.output[r][c].of(lane) = FragmentSums{};
        PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
          own.largest[r][half].of(lane) = -INFINITY;
          own.total[r][half].of(lane) = 0;
        }
      }
    });
  }

  template <class Warp>
  PLUMB_SIMT void add_tile(const Warp& warp, State<Warp>& own, const Tile& queries, const Tile& keys,
                           const ValueTile& values, const AttentionItem& item, int first_query, int first_key) const {
    typename Warp::template PerLane<FragmentSums> scores[kRowTiles][kKeys / 8];
    const int row = warp.index() * kRowTiles * 16;
    products_of_rows(warp, scores, queries, row, keys);
    bound_scores<kScores>(warp, scores, of);
    hide_unseen(warp, scores, TileMask(of.block, first_query + row, first_key));
    const float factor = score_factor<kScores>(of) * kLog2E;
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
        const float shrink = power_of_two(own.largest[r][half].of(lane) * factor - base);
        float total = own.total[r][half].of(lane) * shrink;
        PLUMB_UNROLL for (int c = 0; c < kKeys / 8; ++c) PLUMB_UNROLL for (int i = 2 * half; i < 2 * half + 2; ++i) {
          float& score = scores[r][c].of(lane).sum[i];
          score = power_of_two(score * factor - base);
          total += score;
        }
        if (shrink != 1)  // in most tiles, no row finds a larger score
          PLUMB_UNROLL for (int c = 0; c < kValueChannels / 8; ++c)
              PLUMB_UNROLL for (int i = 2 * half; i < 2 * half + 2; ++i) own.output[r][c]
                  .of(lane)
                  .sum[i] *= shrink;
        own.total[r][half].of(lane) = total;
        own.largest[r][half].of(lane) = most.of(lane);
      });
    }
    if constexpr (kScores == Scores::kDropped) {
      const ProbabilityMask mask(of.size().dropout, of.numbers, item.batch, item.head);
      warp.each_lane([&](int lane) {
        PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int c = 0; c < kKeys / 8; ++c)
            PLUMB_UNROLL for (int i = 0; i < 4; ++i) scores[r][c]
                .of(lane)
                .sum[i] *= mask.factor(of.block.queries.position(first_query + row + 16 * r + row_of_sum(lane, i)),
                                       of.block.keys.position(first_key + 8 * c + column_of_sum(lane, i)));
      });
    }
    add_weighted_tile(warp, own.output, scores, values);
  }

  template <class Warp>
  PLUMB_SIMT void look_back(const Warp& warp, Before<Warp>& before, const AttentionItem& item, int first_query) const {
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
        const int query = first_query + (warp.index() * kRowTiles + r) * 16 + row_of_sum(lane, 2 * half);
        before.log_sum_exp[r][half].of(lane) = of.block.is_first || query >= of.size().sequence
                                                   ? -INFINITY
                                                   : log_sum_exp[of.statistic(item.batch, item.head, query)];
      }
    });
  }

  template <class Warp>
  PLUMB_SIMT void end(const Warp& warp, State<Warp>& own, const Before<Warp>& before, const AttentionItem& item,
                      int first_query) const {
    PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
      combine_over_row(warp, own.total[r][half], Add{});
      warp.each_lane([&](int lane) {
        const int query = first_query + (warp.index() * kRowTiles + r) * 16 + row_of_sum(lane, 2 * half);
        if (query >= of.size().sequence) return;
        MergedSoftmax merged =
            merged_softmax(before.log_sum_exp[r][half].of(lane),
                           own.largest[r][half].of(lane) * score_factor<kScores>(of), own.total[r][half].of(lane));
        if (of.sinks != nullptr && output != nullptr) merged = with_sink(merged, of.sinks[item.head]);
        const std::int64_t at = of.output(item.batch, query, item.head);
        const RowEnd<S> end{output == nullptr ? nullptr : output + at, sums == nullptr ? nullptr : sums + at,
                            !of.block.is_first};
        end_row<kValueChannels>(end, own.output[r], lane, half, merged.keep, merged.add,
                                in_32_bits(of.value_channels()));
        if (lane % 4 == 0) log_sum_exp[of.statistic(item.batch, item.head, query)] = merged.log_sum_exp;
      });
    }
  }
};

}}}  // namespace plumb::kernels::simt
