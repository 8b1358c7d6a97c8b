#pragma once
// The gradients of attention's keys and values on tensor cores, after that of the queries (warp_query_gradient.h).
//
// The scores are transposed, [keys, queries], so that probabilities and their gradients are the left factors of products
// as they stand in registers. Where a warp has no room for the gradients of both, the block has twice as many warps:
// half of them have the values' gradient, and the others the keys'. Both compute the probabilities, which makes five
// products of four.

#include <type_traits>

#include "kernels/simt/attention/warp_attention.h"

namespace plumb { inline namespace kernels { namespace simt {

/// AttentionKeyValueGradient (attention.h) on tensor cores, after WarpAttentionQueryGradient has run.
template <class S, int kChannels, int kValueChannels, Scores kScores>
struct WarpAttentionKeyValueGradient {
  static constexpr AttentionTiles kTiles = attention_tiles(kChannels, kScores);
  static constexpr int kKeyWarps = 4, kKeys = kKeyWarps * 16, kWarps = kTiles.is_divided ? 2 * kKeyWarps : kKeyWarps;
  static constexpr int kQueries = kTiles.gradient_queries;
  static constexpr int kBoth =
      kChannels + kValueChannels;  // numbers of a key with its value, or of a query with its gradient
  static constexpr std::int64_t kSharedBytes = std::int64_t{kKeys + 2 * kQueries} * kBoth * 2 + 4 * kQueries * 4;

  S* dqkv;
  float* gradients;
  const float* products;
  const S* doutput;
  const float* log_sum_exp;
  AttentionView<S, kChannels == kValueChannels> of;

  std::int64_t items() const { return of.size().batch * of.size().kv_heads * tiles_of(of.block.keys_seen(), kKeys); }

  template <class Block>
  PLUMB_SIMT void operator()(const Block& block) const {
    const AttentionSize& size = of.size();
    const std::int64_t all = size.batch * size.kv_heads * tiles_of(of.block.keys_seen(), kKeys);
    for (std::int64_t item = block.block(); item < all; item += block.blocks())
      attend(block, attention_item(item, size.batch, size.kv_heads));  // the first keys have the most queries
  }

 private:
  using Tile = SharedTile<S, kChannels>;
  using ValueTile = SharedTile<S, kValueChannels>;

  template <class Warp>
  struct BothGradients {
    typename Warp::template PerLane<FragmentSums> keys[1][kChannels / 8], values[1][kValueChannels / 8];
    PLUMB_SIMT auto& of_keys() { return keys; }
    PLUMB_SIMT auto& of_values() { return values; }
  };
  /// The gradient of a warp that has one of the two.
  template <class Warp>
  struct OneGradient {
    typename Warp::template PerLane<FragmentSums> sums[1][kChannels / 8];
    PLUMB_SIMT auto& of_keys() { return sums; }
    PLUMB_SIMT auto& of_values() { return sums; }
  };
  template <class Warp>
  using State = std::conditional_t<kTiles.is_divided, OneGradient<Warp>, BothGradients<Warp>>;

  /// Return the first of a warp's keys in the tile, and which gradients it has.
  PLUMB_SIMT static int first_row(int warp) { return warp % kKeyWarps * 16; }
  PLUMB_SIMT static bool has_values(int warp) { return !kTiles.is_divided || warp < kKeyWarps; }
  PLUMB_SIMT static bool has_keys(int warp) { return !kTiles.is_divided || warp >= kKeyWarps; }

  /// Statistics of a tile of queries: log-sum-exp in powers of two, and products.
  struct Statistics {
    float* log_sum;
    float* product;
  };
  /// A tile of queries of a head, for the first of a tile's keys.
  struct Place {
    int batch, head, first_query, first_key;
  };

  template <class Block>
  PLUMB_SIMT void attend(const Block& block, const AttentionItem& item) const {
    using Warp = typename Block::Warp;
    const AttentionSize& size = of.size();
    const int kv = item.head, group = in_32_bits(size.heads / size.kv_heads);
    const int channels = in_32_bits(size.head_size), value_channels = in_32_bits(of.value_channels());
    const KeyValueRows rows(of, item.batch, kv);
    const int first_key = item.tile * kKeys, keys_there = smaller(kKeys, rows.keys.there - first_key);
    const int first_tile = static_cast<int>(of.block.first_query(of.block.keys.position(first_key)) / kQueries);
    const std::int64_t queries_end = of.block.queries_end(of.block.keys.position(first_key + keys_there - 1));
    const int tiles = static_cast<int>(tiles_of(queries_end, kQueries)) - first_tile;
    if (tiles <= 0) return;  // no query sees them
    S* shared = reinterpret_cast<S*>(block.shared());
    const Tile keys{shared};
    const ValueTile values{shared + kKeys * kChannels};
    // Step i handles tile first_tile + i % tiles of head kv * group + i / tiles.
    const auto queries_in = [&](int step) { return Tile{shared + (kKeys + step % 2 * kQueries) * kBoth}; };
    const auto doutputs_in = [&](int step) { return ValueTile{queries_in(step).first + kQueries * kChannels}; };
    const auto statistics_in = [&](int step) {
      float* first = reinterpret_cast<float*>(shared + (kKeys + 2 * kQueries) * kBoth) + step % 2 * 2 * kQueries;
      return Statistics{first, first + kQueries};
    };
    const auto place_of = [&](int step) {
      return Place{item.batch, kv * group + step / tiles, (first_tile + step % tiles) * kQueries, first_key};
    };
    // These are the rows of the group's first head; those of the others stand behind it.
    const TensorRows<S> all_queries =
        rows_from(of.qkv + of.query(item.batch, 0, kv * group), of.width(), size.sequence);
    const TensorRows<S> all_doutputs =
        rows_from(doutput + of.output(item.batch, 0, kv * group), size.heads * of.value_channels(), size.sequence);
    const std::int64_t first_statistic = of.statistic(item.batch, kv * group, 0);
    const auto rows_at = [&](const TensorRows<S>& all, int step, int of_head) {
      const int query = (first_tile + step % tiles) * kQueries;
      return TensorRows<S>{all.first + step / tiles * of_head + std::int64_t{query} * all.stride, all.stride,
                           all.there - query};
    };
    const auto start_step = [&](int step) {
      start_tile<kQueries, kWarps>(block, queries_in(step), rows_at(all_queries, step, channels), channels);
      start_tile<kQueries, kWarps>(block, doutputs_in(step), rows_at(all_doutputs, step, value_channels),
                                   value_channels);
      block.each_warp([&](const auto& warp) {
        warp.each_lane([&](int lane) {
          const Statistics to = statistics_in(step);
          const int first = (first_tile + step % tiles) * kQueries, heads_before = step / tiles;
          for (int r = warp.index() * kWarpLanes + lane; r < kQueries; r += kWarps * kWarpLanes) {
            const int row = smaller(first + r, all_queries.there - 1);
            const std::int64_t statistic = first_statistic + heads_before * all_queries.there + row;
            to.log_sum[r] = log_sum_exp[statistic] * kLog2E;
            to.product[r] = products[statistic];
          }
        });
      });
    };

    rows.template start<kKeys, kWarps>(block, keys, values, first_key, channels, value_channels);
    start_step(0);
    typename Block::template PerWarp<State<Warp>> states;
    block.each_warp([&](const auto& warp) {
      State<Warp>& own = block.of(states, warp);
      warp.each_lane([&](int lane) {
        PLUMB_UNROLL for (auto& sums : own.of_keys()[0]) sums.of(lane) = FragmentSums{};
        PLUMB_UNROLL for (auto& sums : own.of_values()[0]) sums.of(lane) = FragmentSums{};
      });
    });
    for (int step = 0; step < tiles * group; ++step) {
      block.settle_copies();
      block.sync();
      if (step + 1 < tiles * group) start_step(step + 1);
      block.each_warp([&](const auto& warp) {
        add_tile(warp, block.of(states, warp), keys, values, queries_in(step), doutputs_in(step), statistics_in(step),
                 place_of(step));
      });
    }
    block.each_warp([&](const auto& warp) {
      State<Warp>& own = block.of(states, warp);
      warp.each_lane([&](int lane) {
        PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
          const int row = first_row(warp.index()) + row_of_sum(lane, 2 * half);
          if (row >= keys_there) continue;
          const std::int64_t key = of.key(item.batch, first_key + row, kv);
          if (has_keys(warp.index()))
            end_row<kChannels>(end_at(key), own.of_keys()[0], lane, half, 1, of.scale(), channels);
          if (has_values(warp.index()))
            end_row<kValueChannels>(end_at(key + of.to_value(kv)), own.of_values()[0], lane, half, 1, 1,
                                    value_channels);
        }
      });
    });
    block.sync();
  }

  PLUMB_SIMT RowEnd<S> end_at(std::int64_t at) const {
    if (of.keys_values == nullptr) return {dqkv + at, nullptr, false};
    return {nullptr, gradients + at, true};
  }

  /// Says which of a lane's probabilities dropout keeps, a bit for each.
  template <class Warp>
  using Kept = typename Warp::template PerLane<std::uint32_t>;

  template <class Warp>
  PLUMB_SIMT void choose(const Warp& warp, Kept<Warp>& kept, const Place& at) const {
    const ProbabilityMask mask(of.size().dropout, of.numbers, at.batch, at.head);
    warp.each_lane([&](int lane) {
      kept.of(lane) = 0;
      PLUMB_UNROLL for (int c = 0; c < kQueries / 8; ++c) PLUMB_UNROLL for (int i = 0; i < 4; ++i) {
        const bool keeps =
            mask.keeps(of.block.queries.position(at.first_query + 8 * c + column_of_sum(lane, i)),
                       of.block.keys.position(at.first_key + first_row(warp.index()) + row_of_sum(lane, i)));
        kept.of(lane) |= static_cast<std::uint32_t>(keeps) << static_cast<unsigned>(4 * c + i);
      }
    });
  }
  template <class Warp, class Sums>
  PLUMB_SIMT void drop(const Warp& warp, Sums (&sums)[1][kQueries / 8], const Kept<Warp>& kept) const {
    const float scale = kept_scale(of.size().dropout);
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int c = 0; c < kQueries / 8; ++c) PLUMB_UNROLL for (int i = 0; i < 4; ++i) sums[0][c]
          .of(lane)
          .sum[i] *= (kept.of(lane) >> static_cast<unsigned>(4 * c + i)) % 2 == 1 ? scale : 0.0F;
    });
  }

  template <class Warp>
  PLUMB_SIMT void add_tile(const Warp& warp, State<Warp>& own, const Tile& keys, const ValueTile& values,
                           const Tile& queries, const ValueTile& doutputs, const Statistics& statistics,
                           const Place& at) const {
    typename Warp::template PerLane<FragmentSums> probabilities[1][kQueries / 8], of_probabilities[1][kQueries / 8];
    Kept<Warp> chosen;
    if constexpr (kScores == Scores::kDropped) choose(warp, chosen, at);
    const int row = first_row(warp.index());
    products_of_rows(warp, probabilities, keys, row, queries);
    bound_scores<kScores>(warp, probabilities, of);
    hide_unseen<true>(warp, probabilities, TileMask(of.block, at.first_query, at.first_key + row));
    const float factor = score_factor<kScores>(of) * kLog2E;
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int c = 0; c < kQueries / 8; ++c) PLUMB_UNROLL for (int i = 0; i < 4; ++i) {
        float& score = probabilities[0][c].of(lane).sum[i];
        score = power_of_two(score * factor - statistics.log_sum[8 * c + column_of_sum(lane, i)]);
      }
    });
    if (has_values(warp.index())) {
      if constexpr (kScores == Scores::kDropped) {
        typename Warp::template PerLane<FragmentSums> kept[1][kQueries / 8];
        PLUMB_UNROLL for (int c = 0; c < kQueries / 8; ++c) kept[0][c] = probabilities[0][c];
        drop(warp, kept, chosen);
        add_weighted_tile(warp, own.of_values(), kept, doutputs);
      } else {
        add_weighted_tile(warp, own.of_values(), probabilities, doutputs);
      }
      if (!has_keys(warp.index())) return;
    }
    products_of_rows(warp, of_probabilities, values, row, doutputs);
    if constexpr (kScores == Scores::kDropped) drop(warp, of_probabilities, chosen);
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int c = 0; c < kQueries / 8; ++c) PLUMB_UNROLL for (int i = 0; i < 4; ++i)
          of_probabilities[0][c]
              .of(lane)
              .sum[i] = probabilities[0][c].of(lane).sum[i] *
                        (of_probabilities[0][c].of(lane).sum[i] - statistics.product[8 * c + column_of_sum(lane, i)]);
    });
    if constexpr (kScores == Scores::kBounded) {
      // There are no registers to keep what bound_scores() has left, but the probabilities know it.
      const float back = 1 / factor;
      warp.each_lane([&](int lane) {
        PLUMB_UNROLL for (int c = 0; c < kQueries / 8; ++c) PLUMB_UNROLL for (int i = 0; i < 4; ++i) {
          const float exponent = binary_logarithm(probabilities[0][c].of(lane).sum[i]);
          const float bounded = (exponent + statistics.log_sum[8 * c + column_of_sum(lane, i)]) * back;
          of_probabilities[0][c].of(lane).sum[i] *= score_slope<kScores>(bounded);
        }
      });
    }
    add_weighted_tile(warp, own.of_keys(), of_probabilities, queries);
  }
};

}}}  // namespace plumb::kernels::simt
