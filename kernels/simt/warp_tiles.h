#pragma once
// Tiles of 16-bit rows in the memory that a block shares, and the two products of attention on tensor cores.

#include "kernels/simt/warp.h"

namespace plumb { inline namespace kernels { namespace simt {

/// A tile [rows, kChannels] in shared memory. The 16-byte pieces of a row are permuted, so that the pieces of eight
/// rows at one column are in different banks.
template <class S, int kChannels>
struct SharedTile {
  static constexpr int kPiece = 8;  // numbers that are copied together
  static_assert(kChannels % 64 == 0, "a row has eight pieces at least");
  S* first;

  PLUMB_SIMT S* at(int row, int column) const {
    const int piece = (column / kPiece) ^ (row % 8);
    return first + row * kChannels + piece * kPiece + column % kPiece;
  }
};

/// Rows of a tensor: `there` rows exist, `stride` numbers apart.
template <class S>
struct TensorRows {
  const S* first;
  std::int64_t stride;
  std::int64_t there;
};

/// Starts the copy of a tile of kRows by kWarps warps. `channels` of each row exist, a multiple of 8; the rest becomes
/// zeros.
template <int kRows, int kWarps, class Block, class S, int kChannels>
PLUMB_SIMT void start_tile(const Block& block, const SharedTile<S, kChannels>& tile, const TensorRows<S>& from,
                           std::int64_t channels) {
  constexpr int kPieces = kChannels / SharedTile<S, kChannels>::kPiece;
  block.each_warp([&](const auto& warp) {
    warp.each_lane([&](int lane) {
      PLUMB_ONE_BY_ONE
      for (int i = warp.index() * kWarpLanes + lane; i < kRows * kPieces; i += kWarps * kWarpLanes) {
        const int row = i / kPieces, column = i % kPieces * 8;
        const bool is_there = row < from.there && column < channels;
        block.start_copy(tile.at(row, column), from.first + (is_there ? row * from.stride + column : 0), is_there);
      }
    });
  });
}

/// Loads the [16, 16] at (row, column) of a tile as a left factor. With `transposed`, it loads the right factors of two
/// products, of columns 0 to 7 and 8 to 15.
template <bool transposed, class Warp, class S, int kChannels>
PLUMB_SIMT void load_square(const Warp& warp, typename Warp::template PerLane<FragmentWords>& words,
                            const SharedTile<S, kChannels>& tile, int row, int column) {
  warp.template load_matrices<transposed>(
      words, [&](int lane) { return tile.at(row + lane / 8 % 2 * 8 + lane % 8, column + lane / 16 * 8); });
}

/// Loads the [16, 16] at (row, column) of a tile whose rows are the columns of a left factor.
template <class Warp, class S, int kChannels>
PLUMB_SIMT void load_transposed(const Warp& warp, typename Warp::template PerLane<FragmentWords>& words,
                                const SharedTile<S, kChannels>& tile, int row, int column) {
  warp.template load_matrices<true>(
      words, [&](int lane) { return tile.at(row + lane / 16 * 8 + lane % 8, column + lane / 8 % 2 * 8); });
}

/// Loads the [16, 16] at (row, column) of a tile whose rows are the columns of two right factors: rows 0 to 7 and 8 to
/// 15.
template <class Warp, class S, int kChannels>
PLUMB_SIMT void load_columns(const Warp& warp, typename Warp::template PerLane<FragmentWords>& words,
                             const SharedTile<S, kChannels>& tile, int row, int column) {
  warp.template load_matrices<false>(
      words, [&](int lane) { return tile.at(row + lane / 16 * 8 + lane % 8, column + lane / 8 % 2 * 8); });
}

/// sums [16 * kRowTiles, 8 * kColumnTiles] = the left tile's rows from `row` on, times the right tile's rows, over
/// channels
template <int kRowTiles, int kColumnTiles, class Warp, class S, int kChannels>
PLUMB_SIMT void products_of_rows(const Warp& warp,
                                 typename Warp::template PerLane<FragmentSums> (&sums)[kRowTiles][kColumnTiles],
                                 const SharedTile<S, kChannels>& left, int row, const SharedTile<S, kChannels>& right) {
  using Words = typename Warp::template PerLane<FragmentWords>;
  warp.each_lane([&](int lane) {
    PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) PLUMB_UNROLL for (int c = 0; c < kColumnTiles; ++c) sums[r][c].of(
        lane) = FragmentSums{};
  });
  PLUMB_UNROLL for (int k = 0; k < kChannels; k += 16) {
    Words of_left[kRowTiles];
    PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) load_square<false>(warp, of_left[r], left, row + 16 * r, k);
    PLUMB_UNROLL for (int c = 0; c < kColumnTiles; c += 2) {
      Words of_right;
      load_columns(warp, of_right, right, 8 * c, k);
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) {
        warp.template multiply_add<S>(sums[r][c], of_left[r], of_right, 0);
        warp.template multiply_add<S>(sums[r][c + 1], of_left[r], of_right, 2);
      }
    }
  }
}

/// sums [16 * kRowTiles, kChannels] += weights [16 * kRowTiles, 8 * kColumnTiles], rounded to S, times the tile's rows
template <int kRowTiles, int kColumnTiles, class Warp, class S, int kChannels>
PLUMB_SIMT void add_weighted_tile(const Warp& warp,
                                  typename Warp::template PerLane<FragmentSums> (&sums)[kRowTiles][kChannels / 8],
                                  typename Warp::template PerLane<FragmentSums> (&weights)[kRowTiles][kColumnTiles],
                                  const SharedTile<S, kChannels>& tile) {
  using Words = typename Warp::template PerLane<FragmentWords>;
  PLUMB_UNROLL for (int k = 0; k < kColumnTiles; k += 2) {
    Words left[kRowTiles];
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) left[r].of(lane) =
          as_left<S>(weights[r][k].of(lane), weights[r][k + 1].of(lane));
    });
    PLUMB_UNROLL for (int c = 0; c < kChannels / 8; c += 2) {
      Words of_tile;
      load_square<true>(warp, of_tile, tile, 8 * k, 8 * c);
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) {
        warp.template multiply_add<S>(sums[r][c], left[r], of_tile, 0);
        warp.template multiply_add<S>(sums[r][c + 1], left[r], of_tile, 2);
      }
    }
  }
}

}}}  // namespace plumb::kernels::simt
