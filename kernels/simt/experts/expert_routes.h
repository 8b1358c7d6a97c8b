#pragma once
// The destinations of a router's picks on a GPU: the row of an expert, or none where the expert is full. Only the
// device knows how many rows an expert has. An expert takes the first picks of each sequence, in the order of its
// tokens; its rows are those of all sequences, one behind the other. Symbols: b sequences, s tokens of each, E experts,
// k picks of a token, R = b*s*k, f channels of an expert, h hidden. There are at most 2^24 picks, since counts go
// through fp32.

#include <cstdint>

#include "kernels/simt/experts/expert_products.h"

namespace plumb { inline namespace kernels {

struct PickRouting {
  std::int64_t sequences = 0;  ///< b
  std::int64_t sequence = 0;   ///< s
  std::int64_t experts = 0;    ///< E
  std::int64_t picks = 0;      ///< k
  std::int64_t capacity = 0;   ///< most picks of one sequence that an expert takes

  PLUMB_SIMT std::int64_t tokens() const { return sequences * sequence; }
};

}}  // namespace plumb::kernels

namespace plumb { inline namespace kernels { namespace simt {

/// Counts the picks of each expert in each sequence, dropped ones included. loads: [b, E]; picks: [b, s, k]
struct CountPicks {
  std::int32_t* loads;
  const std::int32_t* picks;
  PickRouting size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t of_sequence = size.sequence * size.picks;
    for (std::int64_t item = thread.block(); item < size.sequences * size.experts; item += thread.blocks()) {
      const std::int32_t* own = picks + item / size.experts * of_sequence;
      const std::int64_t expert = item % size.experts;
      const float count =
          sum_over_row(thread, of_sequence, [&](std::int64_t i) { return own[i] == expert ? 1.0F : 0.0F; });
      if (thread.lane() == 0) loads[item] = static_cast<std::int32_t>(count);
    }
  }
};

/// Sums up the loads of some slices. sums: [b, E]; loads: [slices, b, E]
struct SumLoads {
  std::int32_t* sums;
  const std::int32_t* loads;
  std::int64_t slices;
  std::int64_t lists;  ///< b E

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, lists, [&](std::int64_t i) {
      std::int32_t sum = 0;
      for (std::int64_t slice = 0; slice < slices; ++slice) sum += loads[slice * lists + i];
      sums[i] = sum;
    });
  }
};

/// Gives each pick its row. A block takes the picks of one expert in one sequence, and its lanes take stretches of the
/// sequence. places: [b, s, k] rows of [R], -1: dropped; bounds: [E + 1], an expert's rows are [bounds[e], bounds[e +
/// 1]); before: [b, E] picks of the sequences' earlier slices, which have taken their part of the capacity; null: none
struct PlacePicks {
  std::int32_t* places;
  std::int32_t* bounds;
  const std::int32_t* picks;
  const std::int32_t* loads;
  PickRouting size;
  const std::int32_t* before;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t all = size.sequences * size.experts;
    for (std::int64_t item = thread.block(); item < all; item += thread.blocks()) {
      const std::int64_t sequence = item / size.experts, expert = item % size.experts;
      const auto rows_where = [&](const auto& counts) {
        return static_cast<std::int64_t>(sum_over_row(thread, all, [&](std::int64_t i) {
          return counts(i / size.experts, i % size.experts) ? static_cast<float>(taken(i)) : 0.0F;
        }));
      };
      const std::int64_t first = rows_where([&](std::int64_t of_sequence, std::int64_t of_expert) {
        return of_expert < expert || (of_expert == expert && of_sequence < sequence);
      });
      place(thread, sequence, expert, first);
      if (sequence > 0) continue;
      const std::int64_t end = rows_where([&](std::int64_t, std::int64_t of_expert) { return of_expert <= expert; });
      if (thread.lane() > 0) continue;
      if (expert == 0) bounds[0] = 0;
      bounds[expert + 1] = static_cast<std::int32_t>(end);
    }
  }

 private:
  /// Returns the picks of a list [b, E] that its expert still has room for.
  PLUMB_SIMT std::int64_t room(std::int64_t list) const {
    if (before == nullptr) return size.capacity;
    return before[list] < size.capacity ? size.capacity - before[list] : 0;
  }
  PLUMB_SIMT std::int64_t taken(std::int64_t list) const { return loads[list] < room(list) ? loads[list] : room(list); }

  template <class Thread>
  PLUMB_SIMT void place(const Thread& thread, std::int64_t sequence, std::int64_t expert, std::int64_t first) const {
    const std::int64_t count = size.sequence * size.picks;
    const std::int64_t stretch = (count + thread.lanes() - 1) / thread.lanes();
    const std::int64_t begin = thread.lane() * stretch, end = begin + stretch < count ? begin + stretch : count;
    const std::int32_t* own = picks + sequence * count;
    const std::int64_t most = room(sequence * size.experts + expert);
    std::int64_t mine = 0, ahead = 0;
    for (std::int64_t i = begin; i < end; ++i) mine += own[i] == expert ? 1 : 0;
    float* shared = thread.shared();
    shared[thread.lane()] = static_cast<float>(mine);
    thread.sync();
    for (int lane = 0; lane < thread.lane(); ++lane) ahead += static_cast<std::int64_t>(shared[lane]);
    thread.sync();  // before any lane writes there again
    for (std::int64_t i = begin; i < end; ++i) {
      if (own[i] != expert) continue;
      places[sequence * count + i] = ahead < most ? static_cast<std::int32_t>(first + ahead) : -1;
      ++ahead;
    }
  }
};

/// Computes the load-balancing loss of each token, and the gradient of the probabilities that it adds in each sequence
/// (executor/layers/host/expert_steps.cpp has the formula). losses: [T]; added, loads: [b, E]; probabilities: [T, E];
/// loss_scale: one number, or null
struct BalanceLoss {
  float* losses;
  float* added;
  const float* probabilities;
  const std::int32_t* loads;
  PickRouting size;
  float scale;  ///< the loss's weight times E / (s k)
  float gradient_scale;
  const float* loss_scale;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const float factor = gradient_scale * (loss_scale == nullptr ? 1.0F : *loss_scale);
    for (std::int64_t token = thread.block(); token < size.tokens(); token += thread.blocks()) {
      const std::int64_t row = token / size.sequence * size.experts;
      const float loss = sum_over_row(thread, size.experts, [&](std::int64_t e) {
        return scale * static_cast<float>(loads[row + e]) * probabilities[token * size.experts + e];
      });
      if (thread.lane() == 0) losses[token] = loss;
      if (token % size.sequence > 0) continue;
      for (std::int64_t e = thread.lane(); e < size.experts; e += thread.lanes())
        added[row + e] = factor * (scale * static_cast<float>(loads[row + e]));
    }
  }
};

/// Computes the gradient of each pick's weight from its row's activation and the activation's gradient. It then
/// multiplies the latter, and the pick's row of the output's gradient, by the weight. A bias of the expert's output is
/// part of what a pick weighs, and its product with the output's gradient part of the weight's. weight_gradients,
/// weights: [T, k]; activation_gradient, activation: [R, f]; output_gradient: [R, h]; places: [T, k]; biases: [E, h] of
/// the experts of those rows, or null
template <class S>
struct WeighPicks {
  float* weight_gradients;
  S* activation_gradient;
  S* output_gradient;
  const S* activation;
  const float* weights;
  const std::int32_t* places;
  std::int64_t picks;  ///< T k
  std::int64_t ffn;
  std::int64_t hidden;
  const S* biases;
  ExpertRows rows;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t pick = thread.block(); pick < picks; pick += thread.blocks()) {
      const std::int64_t place = places[pick];
      if (place < 0) {
        if (thread.lane() == 0) weight_gradients[pick] = 0;
        continue;
      }
      S* gradient = activation_gradient + place * ffn;
      const S* own = activation + place * ffn;
      S* output = output_gradient + place * hidden;
      float sum = sum_over_row(thread, ffn, [&](std::int64_t c) { return widened(gradient[c]) * widened(own[c]); });
      if (biases != nullptr) {
        const S* bias = biases + rows.expert_of(place) * hidden;
        sum += sum_over_row(thread, hidden, [&](std::int64_t c) { return widened(output[c]) * widened(bias[c]); });
      }
      const float weight = weights[pick];
      if (thread.lane() == 0) weight_gradients[pick] = sum;
      for (std::int64_t c = thread.lane(); c < ffn; c += thread.lanes())
        store(gradient[c], weight * widened(gradient[c]));
      for (std::int64_t c = thread.lane(); c < hidden; c += thread.lanes())
        store(output[c], weight * widened(output[c]));
    }
  }
};

}}}  // namespace plumb::kernels::simt
