#pragma once
// The products of kernels/simt/experts/expert_products.h on tensor cores, for 16-bit tensors whose rows are multiples
// of 8 numbers and begin at multiples of 16 bytes. A block takes a tile of 128 x 64 of the result, and each of its four
// warps 32 rows. The summed dimension goes through shared memory 64 at a time, and the next 64 are copied meanwhile.

#include <type_traits>

#include "kernels/simt/experts/expert_products.h"
#include "kernels/simt/warp_tiles.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Forward and input gradient: to [rows, columns] = from [rows, inner] W^T or W. Weight gradient: to [experts, rows of
/// a weight, columns] += left^T right. S is the format of the factors; To is float in a weight gradient.
template <class S, class To, ExpertForm kForm>
struct WarpExpertProduct {
  static constexpr int kWarps = 4;
  static constexpr int kRowTiles = 2;  // tiles of 16 rows for each warp
  static constexpr int kRows = kWarps * kRowTiles * 16;
  static constexpr int kColumns = 64;
  static constexpr int kInner = 64;
  static constexpr std::int64_t kSharedBytes = std::int64_t{2} * (kRows + kColumns) * kInner * 2;
  static constexpr bool kIsWeightGrad = kForm == ExpertForm::kWeightGrad;

  To* to;
  const S* left;   ///< x, or dy: [rows, inner]; in a weight gradient dy: [rows, height]
  const S* right;  ///< weights; in a weight gradient x: [rows, columns]
  ExpertRows rows;
  std::int64_t columns;
  std::int64_t inner;   ///< not set in a weight gradient, which sums over an expert's rows
  std::int64_t height;  ///< set in a weight gradient alone: rows of one weight

  std::int64_t items() const {
    const std::int64_t across = parts_of(columns, kColumns);
    return across * (kIsWeightGrad ? rows.experts * parts_of(height, kRows) : most_tiles(rows, kRows));
  }

  template <class Block>
  PLUMB_SIMT void operator()(const Block& block) const {
    const std::int64_t across = parts_of(columns, kColumns), down = kIsWeightGrad ? parts_of(height, kRows) : 1;
    const std::int64_t all = across * (kIsWeightGrad ? rows.experts * down : most_tiles(rows, kRows));
    for (std::int64_t item = block.block(); item < all; item += block.blocks()) {
      const std::int64_t column = item % across * kColumns;
      if constexpr (kIsWeightGrad) {
        const std::int64_t expert = item / (across * down), row = item / across % down * kRows;
        const std::int64_t begin = rows.begin(expert);
        multiply(block, {.left = left + begin * height + row,
                         .right = right + begin * columns + column,
                         .to = to + (expert * height + row) * columns + column,
                         .rows = height - row,
                         .columns = columns - column,
                         .inner = rows.end(expert) - begin});
      } else {
        const ExpertTile tile = expert_tile(rows, item / across, kRows);
        if (tile.there == 0) return;  // nor is there a tile behind it
        const S* weights = right + tile.expert * columns * inner;
        multiply(block, {.left = left + tile.first * inner,
                         .right = weights + (kForm == ExpertForm::kForward ? column * inner : column),
                         .to = to + tile.first * columns + column,
                         .rows = tile.there,
                         .columns = columns - column,
                         .inner = inner});
      }
    }
  }

 private:
  using LeftTile = SharedTile<S, kIsWeightGrad ? kRows : kInner>;
  using RightTile = SharedTile<S, kForm == ExpertForm::kForward ? kInner : kColumns>;

  /// One tile of the result: where it and its factors begin, and how much of it exists.
  struct Tile {
    const S* left;
    const S* right;
    To* to;
    std::int64_t rows, columns, inner;
  };
  template <class Warp>
  struct State {
    typename Warp::template PerLane<FragmentSums> sums[kRowTiles][kColumns / 8];
  };

  template <class Block>
  PLUMB_SIMT void multiply(const Block& block, const Tile& tile) const {
    using Warp = typename Block::Warp;
    S* shared = reinterpret_cast<S*>(block.shared());
    const auto left_in = [&](std::int64_t step) { return LeftTile{shared + step % 2 * (kRows + kColumns) * kInner}; };
    const auto right_in = [&](std::int64_t step) { return RightTile{left_in(step).first + kRows * kInner}; };
    const auto start = [&](std::int64_t step) {
      const std::int64_t first = step * kInner, there = tile.inner - first;
      if constexpr (kIsWeightGrad)
        start_tile<kInner, kWarps>(block, left_in(step), rows_from(tile.left + first * height, height, there),
                                   in_32_bits(tile.rows));
      else
        start_tile<kRows, kWarps>(block, left_in(step), rows_from(tile.left + first, inner, tile.rows),
                                  in_32_bits(there));
      if constexpr (kForm == ExpertForm::kForward)
        start_tile<kColumns, kWarps>(block, right_in(step), rows_from(tile.right + first, inner, tile.columns),
                                     in_32_bits(there));
      else
        start_tile<kInner, kWarps>(block, right_in(step), rows_from(tile.right + first * columns, columns, there),
                                   in_32_bits(tile.columns));
    };

    const std::int64_t steps = parts_of(tile.inner, kInner);
    if (steps == 0) return;  // no token picked the expert, so nothing is added
    start(0);
    typename Block::template PerWarp<State<Warp>> states;
    block.each_warp([&](const auto& warp) {
      warp.each_lane([&](int lane) {
        PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int c = 0; c < kColumns / 8; ++c)
            block.of(states, warp)
                .sums[r][c]
                .of(lane) = FragmentSums{};
      });
    });
    for (std::int64_t step = 0; step < steps; ++step) {
      block.settle_copies();
      block.sync();  // the tiles are there, and no warp reads those before any more
      if (step + 1 < steps) start(step + 1);
      block.each_warp([&](const auto& warp) { add(warp, block.of(states, warp), left_in(step), right_in(step)); });
    }
    block.each_warp([&](const auto& warp) { end(warp, block.of(states, warp), tile); });
    block.sync();  // before the next tile's copies
  }

  template <class Warp>
  PLUMB_SIMT void add(const Warp& warp, State<Warp>& own, const LeftTile& left_tile,
                      const RightTile& right_tile) const {
    using Words = typename Warp::template PerLane<FragmentWords>;
    const int row = warp.index() * kRowTiles * 16;
    const auto left_rows = kIsWeightGrad ? columns_of(warp, left_tile, 0, row) : squares_of(warp, left_tile, row);
    const auto right_rows =
        kForm == ExpertForm::kForward ? columns_of(warp, right_tile, 0) : squares_of(warp, right_tile, 0);
    PLUMB_UNROLL for (int k = 0; k < kInner; k += 16) {
      Words of_left[kRowTiles];
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) {
        if constexpr (kIsWeightGrad)
          left_rows.template load<true>(warp, of_left[r], k, 16 * r);
        else
          left_rows.template load<false>(warp, of_left[r], 16 * r, k);
      }
      PLUMB_UNROLL for (int c = 0; c < kColumns / 8; c += 2) {
        Words of_right;
        if constexpr (kForm == ExpertForm::kForward)
          right_rows.template load<false>(warp, of_right, 8 * c, k);
        else
          right_rows.template load<true>(warp, of_right, k, 8 * c);
        PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) {
          warp.template multiply_add<S>(own.sums[r][c], of_left[r], of_right, 0);
          warp.template multiply_add<S>(own.sums[r][c + 1], of_left[r], of_right, 2);
        }
      }
    }
  }

  template <class Warp>
  PLUMB_SIMT void end(const Warp& warp, State<Warp>& own, const Tile& tile) const {
    const int first = warp.index() * kRowTiles * 16;
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int c = 0; c < kColumns / 8; ++c) {
        const FragmentSums& sums = own.sums[r][c].of(lane);
        PLUMB_UNROLL for (int half = 0; half < 2; ++half) {
          const std::int64_t row = first + 16 * r + row_of_sum(lane, 2 * half);
          const std::int64_t column = 8 * c + column_of_sum(lane, 2 * half);
          if (row >= tile.rows || column >= tile.columns) continue;  // columns come in eights
          To* pair = tile.to + row * columns + column;
          const float low = sums.sum[2 * half], high = sums.sum[2 * half + 1];
          if constexpr (std::is_same_v<To, float>) {
            pair[0] = (kIsWeightGrad ? pair[0] : 0.0F) + low;
            pair[1] = (kIsWeightGrad ? pair[1] : 0.0F) + high;
          } else {
            store_pair<To>(pair, low, high);
          }
        }
      }
    });
  }
};

}}}  // namespace plumb::kernels::simt
