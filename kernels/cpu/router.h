#pragma once
// The router of a mixture of experts: a softmax over the experts (Shazeer et al. 2017) or a sigmoid of each score
// (DeepSeek-AI 2024, 2412.19437), and each token picks the most probable ones. KernelKind kRouter.

#include <cstdint>

namespace plumb { inline namespace kernels {

struct RouterSize {
  std::int64_t tokens = 0;         ///< T
  std::int64_t experts = 0;        ///< E
  std::int64_t picks = 0;          ///< k experts a token, at most E
  bool sigmoid = false;            ///< a probability is the sigmoid of its score; otherwise a softmax over the experts
  std::int64_t expert_groups = 1;  ///< equal groups of neighbouring experts
  std::int64_t groups_per_token = 1;  ///< groups from which a token's picks come

  /// Returns the number of a group's best experts whose sum is its score: 1 (DeepSeek-V2), and with a sigmoid as many
  /// as come from each group in the mean (DeepSeek-V3).
  constexpr std::int64_t group_best() const {
    return sigmoid && picks > groups_per_token ? picks / groups_per_token : 1;
  }
};

/// Turns scores into probabilities, row by row. The picks are the k largest in descending order; of equal ones the
/// first comes first. With a bias [E] the picks have the largest sums with it (Wang et al. 2024, 2408.15664). Picks come
/// from the groups whose scores, of these sums, are the largest.
/// scores: [T, E], picks: [T, k]
void router_forward(float* scores, std::int32_t* picks, const RouterSize& size, const float* bias = nullptr);

/// Adds E for each pick of an expert, less the number of all picks: above 0 where an expert has more picks than the mean.
/// excess: [E], picks: [T, k]
void add_excess_picks(float* excess, const std::int32_t* picks, const RouterSize& size);

/// Writes the weight of each pick: its probability or, with `renormalised`, that divided by the sum over its token's
/// picks. weights: [T, k], probabilities: [T, E], picks: [T, k]
void pick_weights(float* weights, const float* probabilities, const std::int32_t* picks, const RouterSize& size,
                  bool renormalised);

/// Turns probabilities into the gradient of the scores, from the gradient of the picks' weights. If `added` is not
/// null, it is added to the gradient of the probabilities. probabilities: [T, E], weight_gradients, picks: [T, k],
/// added: [T/tokens_a_row, E], one row for each run of `tokens_a_row` tokens
void router_backward(float* probabilities, const float* weight_gradients, const std::int32_t* picks,
                     const RouterSize& size, bool renormalised, const float* added, std::int64_t tokens_a_row);

}}  // namespace plumb::kernels
