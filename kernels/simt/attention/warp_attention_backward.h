#pragma once
// The backward of attention on tensor cores, in two passes that each compute the probabilities anew: one over keys for
// the queries' gradients, and one over queries for the keys' and values' gradients. (Dao 2023, algorithm 2, has one
// pass, which adds the queries' gradients by atomics.) No two blocks add to the same element.
//
// The second pass has the scores transposed, [keys, queries], so that probabilities and their gradients are the left
// factors of its products as they stand in registers.

#include "kernels/simt/attention/warp_attention.h"
#include "kernels/simt/wide.h"

namespace plumb { inline namespace kernels { namespace simt {

/// AttentionQueryGradient (attention.h) on tensor cores. kDrops: probabilities are dropped.
template <class S, int kChannels, bool kDrops>
struct WarpAttentionQueryGradient {
  static constexpr int kWarps = 4;
  static constexpr int kRowTiles = 2;
  static constexpr int kQueries = kWarps * kRowTiles * 16;
  static constexpr int kKeys = kChannels > 64 ? 16 : 32;
  static constexpr std::int64_t kSharedBytes = std::int64_t{2 * kQueries + 4 * kKeys} * kChannels * 2 + kQueries * 4;

  S* dqkv;
  float* sums;
  float* products;
  const S* doutput;
  const S* output;
  const float* log_sum_exp;
  AttentionView<S, true> of;

  std::int64_t items() const { return of.size().batch * of.size().heads * tiles_of(of.size().sequence, kQueries); }

  template <class Block>
  PLUMB_SIMT void operator()(const Block& block) const {
    const AttentionSize& size = of.size();
    const std::int64_t all = size.batch * size.heads * tiles_of(size.sequence, kQueries);
    for (std::int64_t item = block.block(); item < all; item += block.blocks())
      attend(block, attention_item(all - 1 - item, size.batch, size.heads));
  }

 private:
  using Tile = SharedTile<S, kChannels>;

  template <class Warp>
  struct State {
    typename Warp::template PerLane<FragmentSums> gradient[kRowTiles][kChannels / 8];
    typename Warp::template PerLane<float> log_sum[kRowTiles][2], product[kRowTiles][2];  // statistics of a lane's rows
  };

  template <class Block>
  PLUMB_SIMT void attend(const Block& block, const AttentionItem& item) const {
    using Warp = typename Block::Warp;
    const AttentionSize& size = of.size();
    const int channels = in_32_bits(size.head_size), first_query = item.tile * kQueries;
    const int queries_there = smaller(kQueries, in_32_bits(size.sequence) - first_query);
    const KeyValueRows<S> rows(of, item.batch, of.kv_head(item.head));
    const std::int64_t first_output = of.output(item.batch, first_query, item.head);
    const KeyTiles tiles = key_tiles(of.block, first_query, queries_there, kKeys);
    S* shared = reinterpret_cast<S*>(block.shared());
    const Tile queries{shared}, gradients{shared + kQueries * kChannels};
    const auto keys_in = [&](int tile) { return Tile{shared + (2 * kQueries + tile % 2 * 2 * kKeys) * kChannels}; };
    const auto values_in = [&](int tile) { return Tile{keys_in(tile).first + kKeys * kChannels}; };
    float* own_products = reinterpret_cast<float*>(shared + (2 * kQueries + 4 * kKeys) * kChannels);
    const auto start_keys = [&](int tile) {
      rows.template start<kKeys, kWarps>(block, keys_in(tile), values_in(tile), tile * kKeys, channels);
    };

    const int output_width = in_32_bits(size.heads * size.head_size);
    start_tile<kQueries, kWarps>(
        block, queries, rows_from(of.qkv + of.query(item.batch, first_query, item.head), of.width(), queries_there),
        channels);
    start_tile<kQueries, kWarps>(block, gradients, {doutput + first_output, output_width, queries_there}, channels);
    if (tiles.first < tiles.end) start_keys(tiles.first);
    block.settle_copies();
    block.sync();
    block.each_warp([&](const auto& warp) {
      warp.each_lane([&](int lane) {
        for (int r = warp.index() * kWarpLanes + lane; r < kQueries; r += kWarps * kWarpLanes) {
          own_products[r] = 0;
          if (r >= queries_there) continue;
          const S* own_output = output + first_output + std::int64_t{r} * output_width;
          for (int c = 0; c < channels; c += kWide<S>) {
            float of_gradient[kWide<S>], of_output[kWide<S>];
            load_all(of_gradient, gradients.at(r, c));
            load_all(of_output, own_output + c);
            for (int j = 0; j < kWide<S>; ++j) own_products[r] += of_gradient[j] * of_output[j];
          }
          products[of.statistic(item.batch, item.head, first_query + r)] = own_products[r];
        }
      });
    });
    block.sync();
    typename Block::template PerWarp<State<Warp>> states;
    block.each_warp([&](const auto& warp) { begin(warp, block.of(states, warp), own_products, item, first_query); });
    for (int tile = tiles.first; tile < tiles.end; ++tile) {
      block.settle_copies();
      block.sync();
      if (tile + 1 < tiles.end) start_keys(tile + 1);
      block.each_warp([&](const auto& warp) {
        add_tile(warp, block.of(states, warp), queries, gradients, keys_in(tile), values_in(tile), item, first_query,
                 tile * kKeys);
      });
    }
    block.each_warp([&](const auto& warp) { end(warp, block.of(states, warp), item, first_query); });
    block.sync();
  }

  template <class Warp>
  PLUMB_SIMT void begin(const Warp& warp, State<Warp>& own, const float* own_products, const AttentionItem& item,
                        int first_query) const {
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) {
        PLUMB_UNROLL for (int c = 0; c < kChannels / 8; ++c) own.gradient[r][c].of(lane) = FragmentSums{};
        PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
          const int row = (warp.index() * kRowTiles + r) * 16 + row_of_sum(lane, 2 * half);
          const int query = smaller(first_query + row, in_32_bits(of.size().sequence) - 1);
          own.log_sum[r][half].of(lane) = log_sum_exp[of.statistic(item.batch, item.head, query)] * kLog2E;
          own.product[r][half].of(lane) = own_products[row];
        }
      }
    });
  }

  template <class Warp>
  PLUMB_SIMT void add_tile(const Warp& warp, State<Warp>& own, const Tile& queries, const Tile& gradients,
                           const Tile& keys, const Tile& values, const AttentionItem& item, int first_query,
                           int first_key) const {
    typename Warp::template PerLane<FragmentSums> scores[kRowTiles][kKeys / 8], of_probabilities[kRowTiles][kKeys / 8];
    const int row = warp.index() * kRowTiles * 16;
    products_of_rows(warp, scores, queries, row, keys);
    products_of_rows(warp, of_probabilities, gradients, row, values);
    hide_unseen(warp, scores, TileMask(of.block, first_query + row, first_key));
    if constexpr (kDrops) {
      const ProbabilityMask mask(of.size().dropout, of.numbers, item.batch, item.head);
      warp.each_lane([&](int lane) {
        PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int c = 0; c < kKeys / 8; ++c)
            PLUMB_UNROLL for (int i = 0; i < 4; ++i) of_probabilities[r][c]
                .of(lane)
                .sum[i] *= mask.factor(of.block.queries.position(first_query + row + 16 * r + row_of_sum(lane, i)),
                                       of.block.keys.position(first_key + 8 * c + column_of_sum(lane, i)));
      });
    }
    const float factor = of.scale() * kLog2E;
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int c = 0; c < kKeys / 8; ++c)
          PLUMB_UNROLL for (int i = 0; i < 4; ++i) {
        float& score = scores[r][c].of(lane).sum[i];
        const float probability = power_of_two(score * factor - own.log_sum[r][i / 2].of(lane));
        score = probability * (of_probabilities[r][c].of(lane).sum[i] - own.product[r][i / 2].of(lane));
      }
    });
    add_weighted_tile(warp, own.gradient, scores, keys);
  }

  template <class Warp>
  PLUMB_SIMT void end(const Warp& warp, State<Warp>& own, const AttentionItem& item, int first_query) const {
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
        const int query = first_query + (warp.index() * kRowTiles + r) * 16 + row_of_sum(lane, 2 * half);
        if (query >= of.size().sequence) continue;
        S* to = dqkv == nullptr ? nullptr : dqkv + of.query(item.batch, query, item.head);
        float* kept = sums == nullptr ? nullptr : sums + of.output(item.batch, query, item.head);
        end_row<kChannels>(RowEnd<S>{to, kept, !of.block.is_first}, own.gradient[r], lane, half, 1, of.scale(),
                           in_32_bits(of.size().head_size));
      }
    });
  }
};

/// AttentionKeyValueGradient (attention.h) on tensor cores, after WarpAttentionQueryGradient has run.
template <class S, int kChannels, bool kDrops>
struct WarpAttentionKeyValueGradient {
  static constexpr int kWarps = 4;
  static constexpr int kKeys = kWarps * 16;
  static constexpr int kQueries = (kChannels > 64 ? 32 : 64) / (kDrops ? 2 : 1);  // as many as registers have room for
  static constexpr std::int64_t kSharedBytes =
      std::int64_t{2 * kKeys + 4 * kQueries} * kChannels * 2 + 4 * kQueries * 4;

  S* dqkv;
  float* gradients;
  const float* products;
  const S* doutput;
  const float* log_sum_exp;
  AttentionView<S, true> of;

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

  template <class Warp>
  struct State {
    typename Warp::template PerLane<FragmentSums> of_keys[1][kChannels / 8], of_values[1][kChannels / 8];
  };
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
    const int kv = item.head, group = in_32_bits(size.heads / size.kv_heads), channels = in_32_bits(size.head_size);
    const KeyValueRows<S> rows(of, item.batch, kv);
    const int first_key = item.tile * kKeys, keys_there = smaller(kKeys, rows.keys.there - first_key);
    const int first_tile = static_cast<int>(of.block.first_query(of.block.keys.position(first_key)) / kQueries);
    const std::int64_t queries_end = of.block.queries_end(of.block.keys.position(first_key + keys_there - 1));
    const int tiles = static_cast<int>(tiles_of(queries_end, kQueries)) - first_tile;
    if (tiles <= 0) return;  // no query sees them
    S* shared = reinterpret_cast<S*>(block.shared());
    const Tile keys{shared}, values{shared + kKeys * kChannels};
    // Step i handles tile first_tile + i % tiles of head kv * group + i / tiles.
    const auto queries_in = [&](int step) { return Tile{shared + (2 * kKeys + step % 2 * 2 * kQueries) * kChannels}; };
    const auto doutputs_in = [&](int step) { return Tile{queries_in(step).first + kQueries * kChannels}; };
    const auto statistics_in = [&](int step) {
      float* first =
          reinterpret_cast<float*>(shared + (2 * kKeys + 4 * kQueries) * kChannels) + step % 2 * 2 * kQueries;
      return Statistics{first, first + kQueries};
    };
    const auto place_of = [&](int step) {
      return Place{item.batch, kv * group + step / tiles, (first_tile + step % tiles) * kQueries, first_key};
    };
    // These are the rows of the group's first head; those of the others stand behind it.
    const TensorRows<S> all_queries =
        rows_from(of.qkv + of.query(item.batch, 0, kv * group), of.width(), size.sequence);
    const TensorRows<S> all_doutputs =
        rows_from(doutput + of.output(item.batch, 0, kv * group), size.heads * size.head_size, size.sequence);
    const std::int64_t first_statistic = of.statistic(item.batch, kv * group, 0);
    const auto rows_at = [&](const TensorRows<S>& all, int step) {
      const int query = (first_tile + step % tiles) * kQueries;
      return TensorRows<S>{all.first + step / tiles * channels + std::int64_t{query} * all.stride, all.stride,
                           all.there - query};
    };
    const auto start_step = [&](int step) {
      start_tile<kQueries, kWarps>(block, queries_in(step), rows_at(all_queries, step), channels);
      start_tile<kQueries, kWarps>(block, doutputs_in(step), rows_at(all_doutputs, step), channels);
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

    rows.template start<kKeys, kWarps>(block, keys, values, first_key, channels);
    start_step(0);
    typename Block::template PerWarp<State<Warp>> states;
    block.each_warp([&](const auto& warp) {
      State<Warp>& own = block.of(states, warp);
      warp.each_lane([&](int lane) {
        PLUMB_UNROLL for (int c = 0; c < kChannels / 8; ++c) own.of_keys[0][c].of(lane) = own.of_values[0][c].of(lane) =
            FragmentSums{};
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
          const int row = warp.index() * 16 + row_of_sum(lane, 2 * half);
          if (row >= keys_there) continue;
          const std::int64_t key = of.key(item.batch, first_key + row, kv);
          end_row<kChannels>(end_at(key), own.of_keys[0], lane, half, 1, of.scale(), channels);
          end_row<kChannels>(end_at(key + of.to_value(kv)), own.of_values[0], lane, half, 1, 1, channels);
        }
      });
    });
    block.sync();
  }

  PLUMB_SIMT RowEnd<S> end_at(std::int64_t at) const {
    if (of.keys_values == nullptr) return {dqkv + at, nullptr, false};
    return {nullptr, gradients + at, true};
  }

  /// Multiplies by the factors of dropout.
  template <class Warp, class Sums>
  PLUMB_SIMT void drop(const Warp& warp, Sums (&sums)[1][kQueries / 8], const Place& at) const {
    const ProbabilityMask mask(of.size().dropout, of.numbers, at.batch, at.head);
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int c = 0; c < kQueries / 8; ++c) PLUMB_UNROLL for (int i = 0; i < 4; ++i) sums[0][c]
          .of(lane)
          .sum[i] *= mask.factor(of.block.queries.position(at.first_query + 8 * c + column_of_sum(lane, i)),
                                 of.block.keys.position(at.first_key + warp.index() * 16 + row_of_sum(lane, i)));
    });
  }

  template <class Warp>
  PLUMB_SIMT void add_tile(const Warp& warp, State<Warp>& own, const Tile& keys, const Tile& values,
                           const Tile& queries, const Tile& doutputs, const Statistics& statistics,
                           const Place& at) const {
    typename Warp::template PerLane<FragmentSums> probabilities[1][kQueries / 8], of_probabilities[1][kQueries / 8];
    const int row = warp.index() * 16;
    products_of_rows(warp, probabilities, keys, row, queries);
    hide_unseen<true>(warp, probabilities, TileMask(of.block, at.first_query, at.first_key + row));
    const float factor = of.scale() * kLog2E;
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int c = 0; c < kQueries / 8; ++c) PLUMB_UNROLL for (int i = 0; i < 4; ++i) {
        float& score = probabilities[0][c].of(lane).sum[i];
        score = power_of_two(score * factor - statistics.log_sum[8 * c + column_of_sum(lane, i)]);
      }
    });
    if constexpr (kDrops) {
      typename Warp::template PerLane<FragmentSums> kept[1][kQueries / 8];
      PLUMB_UNROLL for (int c = 0; c < kQueries / 8; ++c) kept[0][c] = probabilities[0][c];
      drop(warp, kept, at);
      add_weighted_tile(warp, own.of_values, kept, doutputs);
    } else {
      add_weighted_tile(warp, own.of_values, probabilities, doutputs);
    }
    products_of_rows(warp, of_probabilities, values, row, doutputs);
    if constexpr (kDrops) drop(warp, of_probabilities, at);
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int c = 0; c < kQueries / 8; ++c) PLUMB_UNROLL for (int i = 0; i < 4; ++i)
          of_probabilities[0][c]
              .of(lane)
              .sum[i] = probabilities[0][c].of(lane).sum[i] *
                        (of_probabilities[0][c].of(lane).sum[i] - statistics.product[8 * c + column_of_sum(lane, i)]);
    });
    add_weighted_tile(warp, own.of_keys, of_probabilities, queries);
  }
};

}}}  // namespace plumb::kernels::simt
