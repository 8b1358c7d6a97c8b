#pragma once
// The router of a mixture of experts (Shazeer et al. 2017): softmax over the experts, of which each token picks the
// most probable ones. KernelKind kRouter.

#include <cstdint>

namespace plumb { inline namespace kernels {

struct RouterSize {
  std::int64_t tokens = 0;   ///< T
  std::int64_t experts = 0;  ///< E
  std::int64_t picks = 0;    ///< k experts a token, at most E
};

/// Scores become probabilities, row by row; picks are the k largest, from the largest on, of equal ones the first.
/// scores: [T, E], picks: [T, k]
void router_forward(float* scores, std::int32_t* picks, const RouterSize& size);

/// What each pick weighs: its probability, or with `renormalised` its part of its token's picks' probabilities.
/// weights: [T, k], probabilities: [T, E], picks: [T, k]
void pick_weights(float* weights, const float* probabilities, const std::int32_t* picks, const RouterSize& size,
                  bool renormalised);

/// Probabilities become the gradient of the scores, given that of the picks' weights and, where not null, one that is
/// added to the probabilities' as it is. probabilities: [T, E], weight_gradients, picks: [T, k], added:
/// [T/tokens_a_row, E], a row for each run of `tokens_a_row` tokens
void router_backward(float* probabilities, const float* weight_gradients, const std::int32_t* picks,
                     const RouterSize& size, bool renormalised, const float* added, std::int64_t tokens_a_row);

}}  // namespace plumb::kernels
