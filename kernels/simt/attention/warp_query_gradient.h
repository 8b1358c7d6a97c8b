#pragma once
// The gradient of attention's queries on tensor cores. The backward has two passes that each compute the probabilities
// anew: this one over keys, and one over queries for the gradients of keys and values (warp_key_value_gradient.h). (Dao
// 2023, algorithm 2, has one pass, which adds the queries' gradients by atomics.) No two blocks add to the same element.

#include "kernels/simt/attention/warp_attention.h"
#include "kernels/simt/wide.h"

namespace plumb { inline namespace kernels { namespace simt {

/// AttentionQueryGradient (attention.h) on tensor cores.
template <class S, int kChannels, int kValueChannels, Scores kScores>
struct WarpAttentionQueryGradient {
  static constexpr int kWarps = 4;
  static constexpr AttentionTiles kTiles = attention_tiles(kChannels, kScores);
  static constexpr int kRowTiles = kTiles.gradient_row_tiles, kQueries = kWarps * kRowTiles * 16;
  static constexpr int kKeys = kTiles.gradient_keys;
  static constexpr int kBoth =
      kChannels + kValueChannels;  // numbers of a query with its gradient, or of a key with its value
  static constexpr std::int64_t kSharedBytes = std::int64_t{kQueries + 2 * kKeys} * kBoth * 2 + kQueries * 4;

  S* dqkv;
  float* sums;
  float* products;
  const S* doutput;
  const S* output;
  const float* log_sum_exp;
  AttentionView<S, kChannels == kValueChannels> of;

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
  using ValueTile = SharedTile<S, kValueChannels>;

  template <class Warp>
  struct State {
    typename Warp::template PerLane<FragmentSums> gradient[kRowTiles][kChannels / 8];
    typename Warp::template PerLane<float> log_sum[kRowTiles][2], product[kRowTiles][2];  // statistics of a lane's rows
  };

  template <class Block>
  PLUMB_SIMT void attend(const Block& block, const AttentionItem& item) const {
    using Warp = typename Block::Warp;
    const AttentionSize& size = of.size();
    const int channels = in_32_bits(size.head_size), value_channels = in_32_bits(of.value_channels());
    const int first_query = item.tile * kQueries;
    const int queries_there = smaller(kQueries, in_32_bits(size.sequence) - first_query);
    const KeyValueRows rows(of, item.batch, of.kv_head(item.head));
    const std::int64_t first_output = of.output(item.batch, first_query, item.head);
    const KeyTiles tiles = key_tiles(of.block, first_query, queries_there, kKeys);
    S* shared = reinterpret_cast<S*>(block.shared());
    const Tile queries{shared};
    const ValueTile gradients{shared + kQueries * kChannels};
    const auto keys_in = [&](int tile) { return Tile{shared + (kQueries + tile % 2 * kKeys) * kBoth}; };
    const auto values_in = [&](int tile) { return ValueTile{keys_in(tile).first + kKeys * kChannels}; };
    float* own_products = reinterpret_cast<float*>(shared + (kQueries + 2 * kKeys) * kBoth);
    const auto start_keys = [&](int tile) {
      rows.template start<kKeys, kWarps>(block, keys_in(tile), values_in(tile), tile * kKeys, channels, value_channels);
    };

    const int output_width = in_32_bits(size.heads * of.value_channels());
    start_tile<kQueries, kWarps>(
        block, queries, rows_from(of.qkv + of.query(item.batch, first_query, item.head), of.width(), queries_there),
        channels);
    start_tile<kQueries, kWarps>(block, gradients, {doutput + first_output, output_width, queries_there},
                                 value_channels);
    if (tiles.first < tiles.end) start_keys(tiles.first);
    block.settle_copies();
    block.sync();
    block.each_warp([&](const auto& warp) {
      warp.each_lane([&](int lane) {
        for (int r = warp.index() * kWarpLanes + lane; r < kQueries; r += kWarps * kWarpLanes) {
          own_products[r] = 0;
          if (r >= queries_there) continue;
          const S* own_output = output + first_output + std::int64_t{r} * output_width;
          for (int c = 0; c < value_channels; c += kWide<S>) {
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
  PLUMB_SIMT void add_tile(const Warp& warp, State<Warp>& own, const Tile& queries, const ValueTile& gradients,
                           const Tile& keys, const ValueTile& values, const AttentionItem& item, int first_query,
                           int first_key) const {
    typename Warp::template PerLane<FragmentSums> scores[kRowTiles][kKeys / 8], of_probabilities[kRowTiles][kKeys / 8];
    const int row = warp.index() * kRowTiles * 16;
    products_of_rows(warp, scores, queries, row, keys);
    products_of_rows(warp, of_probabilities, gradients, row, values);
    bound_scores<kScores>(warp, scores, of);
    hide_unseen(warp, scores, TileMask(of.block, first_query + row, first_key));
    if constexpr (kScores == Scores::kDropped) {
      const ProbabilityMask mask(of.size().dropout, of.numbers, item.batch, item.head);
      warp.each_lane([&](int lane) {
        PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int c = 0; c < kKeys / 8; ++c)
            PLUMB_UNROLL for (int i = 0; i < 4; ++i) of_probabilities[r][c]
                .of(lane)
                .sum[i] *= mask.factor(of.block.queries.position(first_query + row + 16 * r + row_of_sum(lane, i)),
                                       of.block.keys.position(first_key + 8 * c + column_of_sum(lane, i)));
      });
    }
    const float factor = score_factor<kScores>(of) * kLog2E;
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int c = 0; c < kKeys / 8; ++c)
          PLUMB_UNROLL for (int i = 0; i < 4; ++i) {
        float& score = scores[r][c].of(lane).sum[i];
        const float probability = power_of_two(score * factor - own.log_sum[r][i / 2].of(lane));
        score = probability * (of_probabilities[r][c].of(lane).sum[i] - own.product[r][i / 2].of(lane)) *
                score_slope<kScores>(score);
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
        float* kept = sums == nullptr ? nullptr : sums + of.query_sum(item.batch, query, item.head);
        end_row<kChannels>(RowEnd<S>{to, kept, !of.block.is_first}, own.gradient[r], lane, half, 1, of.scale(),
                           in_32_bits(of.size().head_size));
      }
    });
  }
};

}}}  // namespace plumb::kernels::simt
