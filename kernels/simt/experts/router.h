#pragma once
// The router of a mixture of experts on a GPU (kernels/cpu/router.h has shapes and formulas), in fp32, like its scores.
// One block takes a token, and its lanes divide the experts.

#include "kernels/cpu/router.h"
#include "kernels/simt/activation.h"
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

/// Turns scores into probabilities, and writes the picks and their weights. At most 2^24 experts, kMostPicks picks and
/// groups for each token.
/// scores: [T, E]; picks, weights: [T, k]; bias: [E] that is added to probabilities where they are compared, or null
struct RouterForward {
  float* scores;
  std::int32_t* picks;
  float* weights;
  RouterSize size;
  bool renormalised;
  const float* bias;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t token = thread.block(); token < size.tokens; token += thread.blocks()) {
      float* row = scores + token * size.experts;
      if (size.sigmoid)
        for (std::int64_t e = thread.lane(); e < size.experts; e += thread.lanes()) row[e] = sigmoid(row[e]);
      else
        softmax(thread, row);

      const auto compared = [&](std::int64_t e) { return bias == nullptr ? row[e] : row[e] + bias[e]; };
      std::int32_t picked[kMostPicks], groups[kMostPicks];
      const std::int64_t each = size.experts / size.expert_groups;
      const bool limited = size.groups_per_token < size.expert_groups;
      if (limited) {
        thread.sync();  // a lane reads the probabilities of a whole group
        pick_largest(thread, groups, size.groups_per_token, size.expert_groups,
                     [&](std::int64_t group) { return group_score(group * each, each, compared); });
      }
      pick_largest(thread, picked, size.picks, size.experts, [&](std::int64_t e) {
        return limited && !is_picked(e / each, groups, size.groups_per_token) ? -INFINITY : compared(e);
      });
      if (thread.lane() > 0) continue;
      float picked_sum = 0;
      for (std::int64_t j = 0; j < size.picks; ++j) picked_sum += row[picked[j]];
      for (std::int64_t j = 0; j < size.picks; ++j) {
        picks[token * size.picks + j] = picked[j];
        weights[token * size.picks + j] = renormalised ? row[picked[j]] / picked_sum : row[picked[j]];
      }
    }
  }

 private:
  template <class Thread, class Value>
  PLUMB_SIMT float largest_of(const Thread& thread, std::int64_t all, const Value& value) const {
    float own = -INFINITY;
    for (std::int64_t e = thread.lane(); e < all; e += thread.lanes()) own = Larger{}(own, value(e));
    return combine_over_block(thread, own, Larger{});
  }

  /// Writes the `count` numbers below `all` of the largest values, of equal ones the first first.
  template <class Thread, class Value>
  PLUMB_SIMT void pick_largest(const Thread& thread, std::int32_t* picked, std::int64_t count, std::int64_t all,
                               const Value& value) const {
    for (std::int64_t j = 0; j < count; ++j) {
      const float best =
          largest_of(thread, all, [&](std::int64_t i) { return is_picked(i, picked, j) ? -INFINITY : value(i); });
      float first = INFINITY;
      for (std::int64_t i = thread.lane(); i < all; i += thread.lanes())
        if (value(i) == best && !is_picked(i, picked, j)) first = Smaller{}(first, static_cast<float>(i));
      picked[j] = static_cast<std::int32_t>(combine_over_block(thread, first, Smaller{}));
    }
  }

  /// Returns the sum of the largest values of `each` experts from `start` on. One lane goes through them.
  template <class Value>
  PLUMB_SIMT float group_score(std::int64_t start, std::int64_t each, const Value& value) const {
    std::int32_t best[kMostPicks];
    float sum = 0;
    for (std::int64_t j = 0; j < size.group_best(); ++j) {
      std::int64_t largest = -1;
      for (std::int64_t e = 0; e < each; ++e)
        if (!is_picked(e, best, j) && (largest < 0 || value(start + e) > value(start + largest))) largest = e;
      best[j] = static_cast<std::int32_t>(largest);
      sum += value(start + largest);
    }
    return sum;
  }

  template <class Thread>
  PLUMB_SIMT void softmax(const Thread& thread, float* row) const {
    const float largest = largest_of(thread, size.experts, [&](std::int64_t e) { return row[e]; });
    const float sum = sum_over_row(thread, size.experts, [&](std::int64_t e) { return expf(row[e] - largest); });
    for (std::int64_t e = thread.lane(); e < size.experts; e += thread.lanes()) row[e] = expf(row[e] - largest) / sum;
  }
};

/// excess[e] += E times the picks of expert e, less all picks. A block takes an expert. excess: [E]; picks: [T, k]
struct AddExcessPicks {
  float* excess;
  const std::int32_t* picks;
  RouterSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t all = size.tokens * size.picks;
    for (std::int64_t expert = thread.block(); expert < size.experts; expert += thread.blocks()) {
      const float count = sum_over_row(thread, all, [&](std::int64_t i) { return picks[i] == expert ? 1.0F : 0.0F; });
      if (thread.lane() == 0)
        excess[expert] += static_cast<float>(size.experts * static_cast<std::int64_t>(count) - all);
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
      // A sigmoid's gradient is p (1 - p) dp, and has no sum over the experts.
      if (!size.sigmoid)
        for (std::int64_t j = 0; j < size.picks; ++j) dot += row[own[j]] * scale * (of_weights[j] - mean);
      if (!size.sigmoid && extra != nullptr)
        dot += sum_over_row(thread, size.experts, [&](std::int64_t e) { return row[e] * extra[e]; });
      thread.sync();  // before the picks' probabilities are replaced
      for (std::int64_t e = thread.lane(); e < size.experts; e += thread.lanes()) {
        float gradient = extra == nullptr ? 0.0F : extra[e];
        for (std::int64_t j = 0; j < size.picks; ++j)
          if (own[j] == e) gradient += scale * (of_weights[j] - mean);
        row[e] *= size.sigmoid ? (1.0F - row[e]) * gradient : gradient - dot;
      }
    }
  }
};

}}}  // namespace plumb::kernels::simt
