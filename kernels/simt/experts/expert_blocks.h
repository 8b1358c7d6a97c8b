#pragma once
// Rows of picks that the ranks of an expert group exchange. A rank sends each rank a block of rows in the order of that
// rank's experts, with room for the most rows that can fall to them. The rows that a rank receives become rows of its
// own experts; an expert's rows are those from all ranks, one behind the other. Only the device knows how many rows
// there are. Symbols: n ranks, e experts of each rank, M rows of a block, E = n e.

#include <cstdint>

#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels {

struct ExpertBlocks {
  std::int64_t ranks = 1;    ///< n
  std::int64_t experts = 1;  ///< e
  std::int64_t rows = 0;     ///< M

  PLUMB_SIMT std::int64_t all_rows() const { return ranks * rows; }
  PLUMB_SIMT std::int64_t all_experts() const { return ranks * experts; }
};

}}  // namespace plumb::kernels

namespace plumb { inline namespace kernels { namespace simt {

/// Turns places among rows in the order of all experts into places in the blocks [n, M]; -1 stays. places: [picks];
/// counts: [E], written: rows of each expert; chosen: [picks], the expert of each; bounds: [E + 1]
struct PlaceInBlocks {
  std::int32_t* places;
  std::int32_t* counts;
  const std::int32_t* chosen;
  const std::int32_t* bounds;
  std::int64_t picks;
  ExpertBlocks size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, size.all_experts(), [&](std::int64_t e) { counts[e] = bounds[e + 1] - bounds[e]; });
    for_each_element(thread, picks, [&](std::int64_t i) {
      if (places[i] < 0) return;
      const std::int64_t rank = chosen[i] / size.experts;
      places[i] = static_cast<std::int32_t>(rank * size.rows + places[i] - bounds[rank * size.experts]);
    });
  }
};

/// Computes the place of each received row among the rows of the own experts; it is -1 behind the block's end. A block
/// takes the rows that one rank sent for one expert. places: [n, M]; bounds: [e + 1] of the own experts' rows; counts:
/// [n, e] rows that each rank sent for each expert
struct PlaceReceived {
  std::int32_t* places;
  std::int32_t* bounds;
  const std::int32_t* counts;
  ExpertBlocks size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t item = thread.block(); item < size.all_experts(); item += thread.blocks()) {
      const std::int64_t rank = item / size.experts, expert = item % size.experts;
      // Rows before: among the own experts' rows, and in the block; rows of this expert.
      std::int32_t first = 0, before = 0, all = 0;
      for (std::int64_t i = 0; i < size.all_experts(); ++i) {
        const std::int64_t of_rank = i / size.experts, of_expert = i % size.experts;
        if (of_expert < expert || (of_expert == expert && of_rank < rank)) first += counts[i];
        if (of_rank == rank && of_expert < expert) before += counts[i];
        if (of_expert == expert) all += counts[i];
      }
      std::int32_t* own = places + rank * size.rows;
      for (std::int64_t row = thread.lane(); row < counts[item]; row += thread.lanes())
        own[before + row] = static_cast<std::int32_t>(first + row);
      if (expert + 1 == size.experts)
        for (std::int64_t row = before + counts[item] + thread.lane(); row < size.rows; row += thread.lanes())
          own[row] = -1;
      if (rank > 0 || thread.lane() > 0) continue;
      bounds[expert] = first;
      if (expert + 1 == size.experts) bounds[size.experts] = first + all;
    }
  }
};

/// placed[places[i]] = values[i] where there is a place. No two places are the same.
struct PlaceSingles {
  float* placed;
  const float* values;
  const std::int32_t* places;
  std::int64_t count;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, count, [&](std::int64_t i) {
      if (places[i] >= 0) placed[places[i]] = values[i];
    });
  }
};

/// values[i] = placed[places[i]], 0 where there is no place.
struct TakeSingles {
  float* values;
  const float* placed;
  const std::int32_t* places;
  std::int64_t count;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, count, [&](std::int64_t i) { values[i] = places[i] < 0 ? 0.0F : placed[places[i]]; });
  }
};

}}}  // namespace plumb::kernels::simt
