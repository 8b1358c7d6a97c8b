#pragma once
// Copies of tokens' rows to the places of their picks, and back, on a GPU (kernels/cpu/copy_rows.h). One block handles
// a token. No two picks have the same place.

#include "kernels/cpu/copy_rows.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// placed[places[t, j]] = rows[t]. placed: [places, C], rows: [T, C], places: [T, k]
template <class S>
struct PlaceRows {
  S* placed;
  const S* rows;
  const std::int32_t* places;
  CopyRowsSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t token = thread.block(); token < size.tokens; token += thread.blocks())
      for (std::int64_t j = 0; j < size.picks; ++j) {
        const std::int64_t place = places[token * size.picks + j];
        if (place < 0) continue;
        for (std::int64_t c = thread.lane(); c < size.columns; c += thread.lanes())
          placed[place * size.columns + c] = rows[token * size.columns + c];
      }
  }
};

/// rows[t] = the weighted sum over j of placed[places[t, j]]. rows: [T, C], placed: [places, C], places: [T, k],
/// weights: [T, k] in fp32, or null
template <class S>
struct SumPlacedRows {
  S* rows;
  const S* placed;
  const std::int32_t* places;
  const float* weights;
  CopyRowsSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t token = thread.block(); token < size.tokens; token += thread.blocks())
      for (std::int64_t c = thread.lane(); c < size.columns; c += thread.lanes()) {
        float sum = 0;
        for (std::int64_t j = 0; j < size.picks; ++j) {
          const std::int64_t place = places[token * size.picks + j];
          if (place < 0) continue;
          const float weight = weights == nullptr ? 1.0F : weights[token * size.picks + j];
          sum += weight * widened(placed[place * size.columns + c]);
        }
        store(rows[token * size.columns + c], sum);
      }
  }
};

}}}  // namespace plumb::kernels::simt
