#pragma once
// Tiles of 16-bit rows in the memory that a block shares, and the two products of attention on tensor cores.

#include "kernels/simt/warp.h"

namespace plumb { inline namespace kernels { namespace simt {

/// A tile [rows, kChannels] in shared memory, which begins at a multiple of 128 bytes. Each eight of the 16-byte pieces
/// of a row are permuted, so that the pieces of eight rows at one column are in different banks.
template <class S, int kChannels>
struct SharedTile {
  static constexpr int kPiece = 8;  // numbers that are copied together
  static constexpr int kRowBytes = kChannels * static_cast<int>(sizeof(S));
  static constexpr int kPermuted = 64;  // numbers of eight pieces
  static_assert(kChannels % kPermuted == 0, "a row has whole groups of eight pieces");
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
  int stride;
  int there;
};

/// Returns a count in 32 bits, of which registers hold twice as many, or the largest such number.
PLUMB_SIMT int in_32_bits(std::int64_t count) {
  constexpr std::int64_t kMost = 0x7FFFFFFF;
  return static_cast<int>(count < kMost ? count : kMost);
}

template <class S>
PLUMB_SIMT TensorRows<S> rows_from(const S* first, std::int64_t stride, std::int64_t there) {
  return {first, in_32_bits(stride), in_32_bits(there)};
}

/// Starts the copy of a tile of kRows by kWarps warps. `channels` of each row exist, a multiple of 8; the rest becomes
/// zeros.
template <int kRows, int kWarps, class Block, class S, int kChannels>
PLUMB_SIMT void start_tile(const Block& block, const SharedTile<S, kChannels>& tile, const TensorRows<S>& from,
                           int channels) {
  constexpr int kPiece = SharedTile<S, kChannels>::kPiece;
  constexpr int kAtOnce = kChannels % 128 == 0 ? 128 : 64;         // columns that the warps copy at once,
  constexpr int kStep = kWarps * kWarpLanes / (kAtOnce / kPiece);  // and rows
  static_assert(kStep % 8 == 0, "a lane's pieces have the same place in all of its rows");
  block.each_warp([&](const auto& warp) {
    warp.each_lane([&](int lane) {
      const int own = warp.index() * kWarpLanes + lane;
      const int row = own / (kAtOnce / kPiece), column = own % (kAtOnce / kPiece) * kPiece;
      S* to = tile.at(row, column);
      const S* source = from.first + std::int64_t{row} * from.stride + column;
      PLUMB_ONE_BY_ONE
      for (int r = row; r < kRows; r += kStep) {
        PLUMB_ONE_BY_ONE
        for (int c = 0; c < kChannels; c += kAtOnce) {
          const bool is_there = r < from.there && column + c < channels;
          block.start_copy(to + c, is_there ? source + c : from.first, is_there);
        }
        to += kStep * kChannels;
        source += std::int64_t{kStep} * from.stride;
      }
    });
  });
}

/// The addresses of a tile's rows that the lanes of a warp read together, at two neighbouring pieces. Other rows and
/// pieces are reached from there without a computation of their own.
template <class Warp, class S, int kChannels>
struct TileRows {
  typename Warp::template PerLane<typename Warp::Address> at;

  /// Reads 16 columns from `column` on, a multiple of 16, of 16 rows, which are `row` behind the first, a multiple of
  /// 8.
  template <bool transposed>
  PLUMB_SIMT void load(const Warp& warp, typename Warp::template PerLane<FragmentWords>& words, int row,
                       int column) const {
    using Tile = SharedTile<S, kChannels>;
    constexpr int kBytes = static_cast<int>(sizeof(S));
    const int permuted = column % Tile::kPermuted;
    warp.template load_matrices<transposed>(words, at, permuted * kBytes,
                                            row * Tile::kRowBytes + (column - permuted) * kBytes);
  }
};

/// Returns the addresses of left factors [16, 16] from (row, column) on. Transposed, they are the right factors of two
/// products, of columns 0 to 7 and 8 to 15. `column` is a multiple of 32.
template <class Warp, class S, int kChannels>
PLUMB_SIMT TileRows<Warp, S, kChannels> squares_of(const Warp& warp, const SharedTile<S, kChannels>& tile, int row,
                                                   int column = 0) {
  TileRows<Warp, S, kChannels> rows;
  warp.each_lane([&](int lane) {
    rows.at.of(lane) = Warp::address_of(tile.at(row + lane / 8 % 2 * 8 + lane % 8, column + lane / 16 * 8));
  });
  return rows;
}

/// Returns those of a tile whose rows are the columns of factors: of two right factors, rows 0 to 7 and 8 to 15.
/// Transposed, they are a left factor.
template <class Warp, class S, int kChannels>
PLUMB_SIMT TileRows<Warp, S, kChannels> columns_of(const Warp& warp, const SharedTile<S, kChannels>& tile, int row,
                                                   int column = 0) {
  TileRows<Warp, S, kChannels> rows;
  warp.each_lane([&](int lane) {
    rows.at.of(lane) = Warp::address_of(tile.at(row + lane / 16 * 8 + lane % 8, column + lane / 8 % 2 * 8));
  });
  return rows;
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
  const auto left_rows = squares_of(warp, left, row);
  const auto right_rows = columns_of(warp, right, 0);
  PLUMB_UNROLL for (int k = 0; k < kChannels; k += 16) {
    Words of_left[kRowTiles];
    PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) left_rows.template load<false>(warp, of_left[r], 16 * r, k);
    PLUMB_UNROLL for (int c = 0; c < kColumnTiles; c += 2) {
      Words of_right;
      right_rows.template load<false>(warp, of_right, 8 * c, k);
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) {
        warp.template multiply_add<S>(sums[r][c], of_left[r], of_right, 0);
        warp.template multiply_add<S>(sums[r][c + 1], of_left[r], of_right, 2);
      }
    }
  }
}

/// sums [16 * kRowTiles, kChannels] += weights [16 * kRowTiles, 8 * kColumnTiles], rounded to S, times the tile's rows.
/// The sums behind the first kChannels / 8 stay as they are.
template <int kRowTiles, int kColumnTiles, class Warp, class S, int kChannels, int kSums>
PLUMB_SIMT void add_weighted_tile(const Warp& warp,
                                  typename Warp::template PerLane<FragmentSums> (&sums)[kRowTiles][kSums],
                                  typename Warp::template PerLane<FragmentSums> (&weights)[kRowTiles][kColumnTiles],
                                  const SharedTile<S, kChannels>& tile) {
  static_assert(kSums >= kChannels / 8);
  using Words = typename Warp::template PerLane<FragmentWords>;
  const auto rows = squares_of(warp, tile, 0);
  PLUMB_UNROLL for (int k = 0; k < kColumnTiles; k += 2) {
    Words left[kRowTiles];
    warp.each_lane([&](int lane) {
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) left[r].of(lane) =
          as_left<S>(weights[r][k].of(lane), weights[r][k + 1].of(lane));
    });
    PLUMB_UNROLL for (int c = 0; c < kChannels / 8; c += 2) {
      Words of_tile;
      rows.template load<true>(warp, of_tile, 8 * k, 8 * c);
      PLUMB_UNROLL for (int r = 0; r < kRowTiles; ++r) {
        warp.template multiply_add<S>(sums[r][c], left[r], of_tile, 0);
        warp.template multiply_add<S>(sums[r][c + 1], left[r], of_tile, 2);
      }
    }
  }
}

}}}  // namespace plumb::kernels::simt
