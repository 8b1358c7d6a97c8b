#pragma once
// The three products of each expert's linear layer on a GPU's vector units, where the number of each expert's rows is
// read on the device (kernels/cpu/products/gemm.h has the products of one expert). A block takes a tile of the result,
// and each lane four rows by four columns of it. A lane adds in ascending order, so any number of lanes computes the
// same. Tensors may have different formats: a router's scores are fp32 whatever its input is.

#include <cstdint>

#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels {

/// The rows of experts, one expert's behind the other's.
struct ExpertRows {
  const std::int32_t* bounds = nullptr;  ///< [experts + 1] on the device; null: one expert has all
  std::int64_t rows = 0;                 ///< most rows that there can be
  std::int64_t experts = 1;

  PLUMB_SIMT std::int64_t begin(std::int64_t expert) const { return bounds == nullptr ? 0 : bounds[expert]; }
  PLUMB_SIMT std::int64_t end(std::int64_t expert) const { return bounds == nullptr ? rows : bounds[expert + 1]; }
  /// Returns the expert that has the row; one must.
  PLUMB_SIMT std::int64_t expert_of(std::int64_t row) const {
    std::int64_t least = 0, most = experts - 1;
    while (least < most) {
      const std::int64_t middle = (least + most) / 2;
      if (row < end(middle))
        most = middle;
      else
        least = middle + 1;
    }
    return least;
  }
};

}}  // namespace plumb::kernels

namespace plumb { inline namespace kernels { namespace simt {

/// The rows of one expert that a block takes together; there are none behind the last tile.
struct ExpertTile {
  std::int64_t expert = 0, first = 0, there = 0;
};

PLUMB_SIMT std::int64_t parts_of(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}

/// Returns the number of tiles that holds all rows, however they fall to experts.
PLUMB_SIMT std::int64_t most_tiles(const ExpertRows& rows, std::int64_t tile_rows) {
  return rows.rows / tile_rows + rows.experts;
}

/// Returns tile number `tile` of all experts' rows.
PLUMB_SIMT ExpertTile expert_tile(const ExpertRows& rows, std::int64_t tile, std::int64_t tile_rows) {
  for (std::int64_t expert = 0; expert < rows.experts; ++expert) {
    const std::int64_t begin = rows.begin(expert), end = rows.end(expert), tiles = parts_of(end - begin, tile_rows);
    if (tile >= tiles) {
      tile -= tiles;
      continue;
    }
    const std::int64_t first = begin + tile * tile_rows;
    return {expert, first, end - first < tile_rows ? end - first : tile_rows};
  }
  return {};
}

/// The lanes of a block over a tile: each has kSide rows and columns, and `wide` lanes are beside one another.
struct LaneGrid {
  static constexpr int kSide = 4;
  static constexpr int kWidest = 16;
  int wide, high, column, row;

  template <class Thread>
  PLUMB_SIMT explicit LaneGrid(const Thread& thread)
      : wide(thread.lanes() < kWidest ? thread.lanes() : kWidest),
        high(thread.lanes() / wide),
        column(thread.lane() % wide),
        row(thread.lane() / wide) {}

  PLUMB_SIMT int tile_rows() const { return kSide * high; }
  PLUMB_SIMT int tile_columns() const { return kSide * wide; }

  /// Calls put(r, c, sum over i < inner of left(r, i) right(c, i)) for those of the lane's rows and columns that exist.
  template <class Left, class Right, class Put>
  PLUMB_SIMT void multiply(std::int64_t rows, std::int64_t columns, std::int64_t inner, const Left& left,
                           const Right& right, const Put& put) const {
    float sums[kSide][kSide] = {};
    const auto inside = [](std::int64_t index, std::int64_t count) { return index < count ? index : count - 1; };
    for (std::int64_t i = 0; i < inner; ++i) {
      float of_left[kSide], of_right[kSide];
      for (int j = 0; j < kSide; ++j) {
        of_left[j] = left(inside(row + j * high, rows), i);
        of_right[j] = right(inside(column + j * wide, columns), i);
      }
      for (int r = 0; r < kSide; ++r)
        for (int c = 0; c < kSide; ++c) sums[r][c] += of_left[r] * of_right[c];
    }
    for (int r = 0; r < kSide; ++r)
      for (int c = 0; c < kSide; ++c)
        if (row + r * high < rows && column + c * wide < columns) put(row + r * high, column + c * wide, sums[r][c]);
  }
};

enum class ExpertForm : std::uint8_t { kForward, kInputGrad, kWeightGrad };

/// to = from W^T (forward), or from W (input gradient). to: [rows, columns], from: [rows, inner]; weights: [columns,
/// inner] of each expert in the forward, else [inner, columns]
template <class To, class From, class W, ExpertForm kForm>
struct ExpertRowProduct {
  To* to;
  const From* from;
  const W* weights;
  ExpertRows rows;
  std::int64_t columns;
  std::int64_t inner;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const LaneGrid grid(thread);
    const std::int64_t across = parts_of(columns, grid.tile_columns());
    const std::int64_t items = most_tiles(rows, grid.tile_rows()) * across;
    for (std::int64_t item = thread.block(); item < items; item += thread.blocks()) {
      const ExpertTile tile = expert_tile(rows, item / across, grid.tile_rows());
      if (tile.there == 0) return;  // nor is there a tile behind it
      const std::int64_t column = item % across * grid.tile_columns();
      const From* left = from + tile.first * inner;
      const W* right = weights + tile.expert * columns * inner;
      grid.multiply(
          tile.there, columns - column, inner,
          [&](std::int64_t r, std::int64_t i) { return widened(left[r * inner + i]); },
          [&](std::int64_t c, std::int64_t i) {
            return widened(right[kForm == ExpertForm::kForward ? (column + c) * inner + i : i * columns + column + c]);
          },
          [&](std::int64_t r, std::int64_t c, float sum) { store(to[(tile.first + r) * columns + column + c], sum); });
    }
  }
};

/// dweights += dy^T x, expert by expert. dweights: [experts, out, in], dy: [rows, out], x: [rows, in]
template <class Dy, class X>
struct ExpertWeightGrad {
  float* dweights;
  const Dy* dy;
  const X* x;
  ExpertRows rows;
  std::int64_t out;
  std::int64_t in;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const LaneGrid grid(thread);
    const std::int64_t down = parts_of(out, grid.tile_rows()), across = parts_of(in, grid.tile_columns());
    for (std::int64_t item = thread.block(); item < rows.experts * down * across; item += thread.blocks()) {
      const std::int64_t expert = item / (down * across), begin = rows.begin(expert);
      const std::int64_t row = item / across % down * grid.tile_rows(), column = item % across * grid.tile_columns();
      float* to = dweights + (expert * out + row) * in + column;
      grid.multiply(
          out - row, in - column, rows.end(expert) - begin,
          [&](std::int64_t r, std::int64_t i) { return widened(dy[(begin + i) * out + row + r]); },
          [&](std::int64_t c, std::int64_t i) { return widened(x[(begin + i) * in + column + c]); },
          [&](std::int64_t r, std::int64_t c, float sum) { to[r * in + c] += sum; });
    }
  }
};

}}}  // namespace plumb::kernels::simt
