#pragma once
// The backward of attention on tensor cores, in two passes that each compute the probabilities anew: one over keys for
// the queries' gradients, and one over queries for the keys' and values' gradients. (Dao 2023, algorithm 2, has one
// pass, which adds the queries' gradients by atomics.) No two blocks add to the same element.
//
// The second pass has the scores transposed, [keys, queries], so that probabilities and their gradients are the left
// factors of its products as they stand in registers.

#include <type_traits>

#include "kernels/simt/attention/warp_attention.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Writes the queries' columns of dqkv, and products [b, a, s]: the inner product of each output row and its gradient,
/// which the pass for keys and values reads. doutput, output: [b*s, a*d]
template <class S, int kChannels, class Keys = OwnKeys<S>>
struct WarpAttentionQueryGradient {
  static constexpr int kWarps = 4;
  static constexpr int kRowTiles = 2;
  static constexpr int kQueries = kWarps * kRowTiles * 16;
  static constexpr int kKeys = 32;
  static constexpr std::int64_t kSharedBytes = std::int64_t{2 * kQueries + 4 * kKeys} * kChannels * 2 + kQueries * 4;

  S* dqkv;
  float* products;
  const S* doutput;
  const S* qkv;
  const S* output;
  const float* log_sum_exp;
  AttentionSize size;
  Keys keys = {};

  std::int64_t items() const { return size.batch * size.heads * tiles_of(size.sequence, kQueries); }

  template <class Block>
  PLUMB_SIMT void operator()(const Block& block) const {
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
    const AttentionRows rows{size};
    const std::int64_t first_row = item.batch * size.sequence, kv = rows.kv_head(item.head);
    const std::int64_t first_query = item.tile * kQueries;
    const std::int64_t queries_there = smaller(kQueries, size.sequence - first_query);
    const std::int64_t first_tile = rows.first_key(keys.before() + first_query) / kKeys;
    const std::int64_t end_tile = tiles_of(keys.before() + first_query + queries_there, kKeys);
    S* shared = reinterpret_cast<S*>(block.shared());
    const Tile queries{shared}, gradients{shared + kQueries * kChannels};
    const auto keys_in = [&](std::int64_t tile) {
      return Tile{shared + (2 * kQueries + tile % 2 * 2 * kKeys) * kChannels};
    };
    const auto values_in = [&](std::int64_t tile) { return Tile{keys_in(tile).first + kKeys * kChannels}; };
    float* own_products = reinterpret_cast<float*>(shared + (2 * kQueries + 4 * kKeys) * kChannels);
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
    start_tile<kQueries, kWarps>(
        block, gradients,
        {doutput + rows.output(first_row + first_query, item.head), size.heads * size.head_size, queries_there},
        size.head_size);
    start_keys(first_tile);
    block.settle_copies();
    block.sync();
    block.each_warp([&](const auto& warp) {
      warp.each_lane([&](int lane) {
        for (int r = warp.index() * kWarpLanes + lane; r < kQueries; r += kWarps * kWarpLanes) {
          float sum = 0;
          if (r < queries_there) {
            const S* own_output = output + rows.output(first_row + first_query + r, item.head);
            for (int c = 0; c < size.head_size; ++c) sum += widened(*gradients.at(r, c)) * widened(own_output[c]);
            products[rows.statistic(item.batch, item.head, first_query + r)] = sum;
          }
          own_products[r] = sum;
        }
      });
    });
    block.sync();
    typename Block::template PerWarp<State<Warp>> states;
    block.each_warp([&](const auto& warp) { begin(warp, block.of(states, warp), own_products, item, first_query); });
    for (std::int64_t tile = first_tile; tile < end_tile; ++tile) {
      block.settle_copies();
      block.sync();
      if (tile + 1 < end_tile) start_keys(tile + 1);
      block.each_warp([&](const auto& warp) {
        add_tile(warp, block.of(states, warp), queries, gradients, keys_in(tile), values_in(tile), first_query,
                 tile * kKeys);
      });
    }
    block.each_warp([&](const auto& warp) { end(warp, block.of(states, warp), item, first_query); });
    block.sync();
  }

  template <class Warp>
  PLUMB_SIMT void begin(const Warp& warp, State<Warp>& own, const float* own_products, const AttentionItem& item,
                        std::int64_t first_query) const {
    const AttentionRows rows{size};
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) {
        PLUMB_UNROLL for (int c = 0; c < kChannels / 8; ++c) own.gradient[r][c].of(lane) = FragmentSums{};
        PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
          const int row = (warp.index() * kRowTiles + r) * 16 + row_of_sum(lane, 2 * half);
          const std::int64_t query = smaller(first_query + row, size.sequence - 1);
          own.log_sum[r][half].of(lane) = log_sum_exp[rows.statistic(item.batch, item.head, query)] * kLog2E;
          own.product[r][half].of(lane) = own_products[row];
        }
      }
    });
  }

  template <class Warp>
  PLUMB_SIMT void add_tile(const Warp& warp, State<Warp>& own, const Tile& queries, const Tile& gradients,
                           const Tile& keys_of_tile, const Tile& values, std::int64_t first_query,
                           std::int64_t first_key) const {
    typename Warp::template PerLane<FragmentSums> scores[kRowTiles][kKeys / 8], of_probabilities[kRowTiles][kKeys / 8];
    const int row = warp.index() * kRowTiles * 16;
    products_of_rows(warp, scores, queries, row, keys_of_tile);
    products_of_rows(warp, of_probabilities, gradients, row, values);
    const TileMask mask(size, keys.before(), first_query + row, first_key);
    const float factor = AttentionRows{size}.scale() * kLog2E;
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int c = 0; c < kKeys / 8; ++c)
          PLUMB_UNROLL for (int i = 0; i < 4; ++i) {
        const bool sees = mask.sees(16 * r + row_of_sum(lane, i), 8 * c + column_of_sum(lane, i));
        float& score = scores[r][c].of(lane).sum[i];
        const float probability = exp2f(score * factor - own.log_sum[r][i / 2].of(lane));
        score = sees ? probability * (of_probabilities[r][c].of(lane).sum[i] - own.product[r][i / 2].of(lane)) : 0.0F;
      }
    });
    add_weighted_tile(warp, own.gradient, scores, keys_of_tile);
  }

  template <class Warp>
  PLUMB_SIMT void end(const Warp& warp, State<Warp>& own, const AttentionItem& item, std::int64_t first_query) const {
    const AttentionRows rows{size};
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
        const std::int64_t query = first_query + (warp.index() * kRowTiles + r) * 16 + row_of_sum(lane, 2 * half);
        if (query < size.sequence)
          store_row<kChannels>(dqkv + rows.query(item.batch * size.sequence + query, item.head), own.gradient[r], lane,
                               half, rows.scale(), size.head_size);
      }
    });
  }
};

/// to[c] += scale * sums, for the elements that store_row writes.
template <int kChannels, class Sums>
PLUMB_SIMT void add_row(float* to, Sums (&sums)[kChannels / 8], int lane, int half, float scale,
                        std::int64_t channels) {
  PLUMB_UNROLL for (int c = 0; c < kChannels / 8; ++c) {
    const int channel = 8 * c + column_of_sum(lane, 0);
    const FragmentSums& own = sums[c].of(lane);
    if (channel >= channels) continue;
    to[channel] += scale * own.sum[2 * half];
    to[channel + 1] += scale * own.sum[2 * half + 1];
  }
}

/// Writes the keys' and values' columns of dqkv, after WarpAttentionQueryGradient has run. For kept keys and values, it
/// adds to their gradients [b*s, 2k*d] instead. The queries of a group's heads are added in their order.
template <class S, int kChannels, class Keys = OwnKeys<S>>
struct WarpAttentionKeyValueGradient {
  static constexpr int kWarps = 4;
  static constexpr int kKeys = kWarps * 16;
  static constexpr int kQueries = kChannels > 64 ? 32 : 64;
  static constexpr std::int64_t kSharedBytes =
      std::int64_t{2 * kKeys + 4 * kQueries} * kChannels * 2 + 4 * kQueries * 4;

  typename Keys::Gradient* dqkv;
  const float* products;
  const S* doutput;
  const S* qkv;
  const float* log_sum_exp;
  AttentionSize size;
  Keys keys = {};

  std::int64_t items() const { return size.batch * size.kv_heads * tiles_of(keys.before() + size.sequence, kKeys); }

  template <class Block>
  PLUMB_SIMT void operator()(const Block& block) const {
    const std::int64_t all = size.batch * size.kv_heads * tiles_of(keys.before() + size.sequence, kKeys);
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

  template <class Block>
  PLUMB_SIMT void attend(const Block& block, const AttentionItem& item) const {
    using Warp = typename Block::Warp;
    const AttentionRows rows{size};
    const std::int64_t first_row = item.batch * size.sequence, kv = item.head;
    const std::int64_t group = size.heads / size.kv_heads;
    const std::int64_t first_key = item.tile * kKeys;
    const std::int64_t keys_there = smaller(kKeys, keys.before() + size.sequence - first_key);
    const std::int64_t first_tile = (first_key > keys.before() ? first_key - keys.before() : 0) / kQueries;
    // The last key in terms of the queries; some keys that a slice keeps lie before all of its queries.
    const std::int64_t queries_end = rows.queries_end(first_key + keys_there - 1 - keys.before());
    const std::int64_t tiles = tiles_of(queries_end, kQueries) - first_tile;
    if (queries_end <= 0) return;  // no query sees them
    S* shared = reinterpret_cast<S*>(block.shared());
    const Tile tile_of_keys{shared}, tile_of_values{shared + kKeys * kChannels};
    // Step i handles tile first_tile + i % tiles of head kv * group + i / tiles.
    const auto queries_in = [&](std::int64_t step) {
      return Tile{shared + (2 * kKeys + step % 2 * 2 * kQueries) * kChannels};
    };
    const auto gradients_in = [&](std::int64_t step) { return Tile{queries_in(step).first + kQueries * kChannels}; };
    const auto statistics_in = [&](std::int64_t step) {
      float* first =
          reinterpret_cast<float*>(shared + (2 * kKeys + 4 * kQueries) * kChannels) + step % 2 * 2 * kQueries;
      return Statistics{first, first + kQueries};
    };
    const auto first_query_of = [&](std::int64_t step) { return (first_tile + step % tiles) * kQueries; };
    const auto start_step = [&](std::int64_t step) {
      const std::int64_t head = kv * group + step / tiles, query = first_query_of(step), row = first_row + query;
      start_tile<kQueries, kWarps>(block, queries_in(step),
                                   {qkv + rows.query(row, head), rows.width(), size.sequence - query}, size.head_size);
      start_tile<kQueries, kWarps>(
          block, gradients_in(step),
          {doutput + rows.output(row, head), size.heads * size.head_size, size.sequence - query}, size.head_size);
      block.each_warp([&](const auto& warp) {
        warp.each_lane([&](int lane) {
          const Statistics to = statistics_in(step);
          for (int r = warp.index() * kWarpLanes + lane; r < kQueries; r += kWarps * kWarpLanes) {
            const std::int64_t from = rows.statistic(item.batch, head, smaller(query + r, size.sequence - 1));
            to.log_sum[r] = log_sum_exp[from] * kLog2E;
            to.product[r] = products[from];
          }
        });
      });
    };

    const S* base = keys.base(qkv);
    const std::int64_t keys_width = keys.width(rows);
    start_tile<kKeys, kWarps>(block, tile_of_keys,
                              {base + keys.key(rows, item.batch, first_key, kv), keys_width, keys_there},
                              size.head_size);
    start_tile<kKeys, kWarps>(block, tile_of_values,
                              {base + keys.value(rows, item.batch, first_key, kv), keys_width, keys_there},
                              size.head_size);
    start_step(0);
    typename Block::template PerWarp<State<Warp>> states;
    block.each_warp([&](const auto& warp) {
      State<Warp>& own = block.of(states, warp);
      warp.each_lane([&](int lane) {
        PLUMB_UNROLL for (int c = 0; c < kChannels / 8; ++c) own.of_keys[0][c].of(lane) = own.of_values[0][c].of(lane) =
            FragmentSums{};
      });
    });
    for (std::int64_t step = 0; step < tiles * group; ++step) {
      block.settle_copies();
      block.sync();
      if (step + 1 < tiles * group) start_step(step + 1);
      block.each_warp([&](const auto& warp) {
        add_tile(warp, block.of(states, warp), tile_of_keys, tile_of_values, queries_in(step), gradients_in(step),
                 statistics_in(step), first_key, first_query_of(step));
      });
    }
    block.each_warp([&](const auto& warp) {
      State<Warp>& own = block.of(states, warp);
      warp.each_lane([&](int lane) {
        PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
          const std::int64_t key = first_key + warp.index() * 16 + row_of_sum(lane, 2 * half);
          if (key >= keys.before() + size.sequence) continue;
          typename Keys::Gradient* to_key = dqkv + keys.key(rows, item.batch, key, kv);
          typename Keys::Gradient* to_value = dqkv + keys.value(rows, item.batch, key, kv);
          if constexpr (std::is_same_v<typename Keys::Gradient, float>) {
            add_row<kChannels>(to_key, own.of_keys[0], lane, half, rows.scale(), size.head_size);
            add_row<kChannels>(to_value, own.of_values[0], lane, half, 1, size.head_size);
          } else {
            store_row<kChannels>(to_key, own.of_keys[0], lane, half, rows.scale(), size.head_size);
            store_row<kChannels>(to_value, own.of_values[0], lane, half, 1, size.head_size);
          }
        }
      });
    });
    block.sync();
  }

  template <class Warp>
  PLUMB_SIMT void add_tile(const Warp& warp, State<Warp>& own, const Tile& keys_of_tile, const Tile& values,
                           const Tile& queries, const Tile& gradients, const Statistics& statistics,
                           std::int64_t first_key, std::int64_t first_query) const {
    typename Warp::template PerLane<FragmentSums> probabilities[1][kQueries / 8], of_probabilities[1][kQueries / 8];
    const int row = warp.index() * 16;
    products_of_rows(warp, probabilities, keys_of_tile, row, queries);
    const TileMask mask(size, keys.before(), first_query, first_key + row);
    const float factor = AttentionRows{size}.scale() * kLog2E;
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int c = 0; c < kQueries / 8; ++c) PLUMB_UNROLL for (int i = 0; i < 4; ++i) {
        const int column = 8 * c + column_of_sum(lane, i);
        const bool sees = mask.sees(column, row_of_sum(lane, i));
        float& score = probabilities[0][c].of(lane).sum[i];
        score = sees ? exp2f(score * factor - statistics.log_sum[column]) : 0.0F;
      }
    });
    add_weighted_tile(warp, own.of_values, probabilities, gradients);
    products_of_rows(warp, of_probabilities, values, row, gradients);
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
