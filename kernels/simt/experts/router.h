#pragma once
// The router of a mixture of experts on a GPU (kernels/cpu/router.h has shapes and formulas), in fp32, like its scores.
// One block takes a token, and its lanes divide the experts.

#include "kernels/cpu/router.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

inline constexpr int kMostPicks = 32;

struct Smaller {
  PLUMB_SIMT float operator()(float a, float b) const { return a < b ? a : b; }
};

/// True if an expert is among the first `count` picks.
PLUMB_SIMT bool is_picked(std::int64_t expert, const std::int32_t* picks, std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j)
    if (picks[j] == expert) return true;
  return false;
}

/// Turns scores into probabilities, and writes the picks and their weights. At most 2^24 experts and kMostPicks picks.
/// scores: [T, E]; picks, weights: [T, k]
struct RouterForward {
  float* scores;
  std::int32_t* picks;
  float* weights;
  RouterSize size;
  bool renormalised;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t token = thread.block(); token < size.tokens; token += thread.blocks()) {
      float* row = scores + token * size.experts;
      const auto largest_of = [&](const auto& counts) {
        float own = -INFINITY;
        for (std::int64_t e = thread.lane(); e < size.experts; e += thread.lanes())
          if (counts(e)) own = Larger{}(own, row[e]);
        return combine_over_block(thread, own, Larger{});
      };
      const float largest = largest_of([](std::int64_t) { return true; });
      const float sum = sum_over_row(thread, size.experts, [&](std::int64_t e) { return expf(row[e] - largest); });
      for (std::int64_t e = thread.lane(); e < size.experts; e += thread.lanes()) row[e] = expf(row[e] - largest) / sum;

      std::int32_t picked[kMostPicks];
      float probability[kMostPicks];
      float picked_sum = 0;
      for (std::int64_t j = 0; j < size.picks; ++j) {
        probability[j] = largest_of([&](std::int64_t e) { return !is_picked(e, picked, j); });
        float first = INFINITY;
        for (std::int64_t e = thread.lane(); e < size.experts; e += thread.lanes())
          if (row[e] == probability[j] && !is_picked(e, picked, j)) first = Smaller{}(first, static_cast<float>(e));
        picked[j] = static_cast<std::int32_t>(combine_over_block(thread, first, Smaller{}));
        picked_sum += probability[j];
      }
      if (thread.lane() > 0) continue;
      for (std::int64_t j = 0; j < size.picks; ++j) {
        picks[token * size.picks + j] = picked[j];
        weights[token * size.picks + j] = renormalised ? probability[j] / picked_sum : probability[j];
      }
    }
  }
};

/// Turns probabilities into the gradient of the scores. probabilities: [T, E]; weight_gradients, picks: [T, k]; added:
/// [T/tokens_a_row, E], or null
struct RouterBackward {
  float* probabilities;
  const float* weight_gradients;
  const std::int32_t* picks;
  RouterSize size;
  bool renormalised;
  const float* added;
  std::int64_t tokens_a_row;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t token = thread.block(); token < size.tokens; token += thread.blocks()) {
      float* row = probabilities + token * size.experts;
      const float* of_weights = weight_gradients + token * size.picks;
      const std::int32_t* own = picks + token * size.picks;
      const float* extra = added == nullptr ? nullptr : added + token / tokens_a_row * size.experts;
      // Every lane adds up the few picks.
      float picked = 0, mean = 0, dot = 0;
      for (std::int64_t j = 0; j < size.picks; ++j) picked += row[own[j]];
      const float scale = renormalised ? 1.0F / picked : 1.0F;
      if (renormalised)
        for (std::int64_t j = 0; j < size.picks; ++j) mean += of_weights[j] * scale * row[own[j]];
      for (std::int64_t j = 0; j < size.picks; ++j) dot += row[own[j]] * scale * (of_weights[j] - mean);
      if (extra != nullptr)
        dot += sum_over_row(thread, size.experts, [&](std::int64_t e) { return row[e] * extra[e]; });
      thread.sync();  // before the picks' probabilities are replaced
      for (std::int64_t e = thread.lane(); e < size.experts; e += thread.lanes()) {
        float gradient = extra == nullptr ? 0.0F : extra[e];
        for (std::int64_t j = 0; j < size.picks; ++j)
          if (own[j] == e) gradient += scale * (of_weights[j] - mean);
        row[e] *= gradient - dot;
      }
    }
  }
};

}}}  // namespace plumb::kernels::simt
