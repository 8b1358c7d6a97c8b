#include "kernels/cpu/router.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/sigmoid.h"

namespace plumb { inline namespace kernels {
namespace {

void softmax(float* row, std::int64_t experts) {
  const float largest = *std::max_element(row, row + experts);
  float sum = 0;
  for (std::int64_t e = 0; e < experts; ++e) {
    row[e] = std::exp(row[e] - largest);
    sum += row[e];
  }
  const float scale = 1.0F / sum;
  for (std::int64_t e = 0; e < experts; ++e) row[e] *= scale;
}

/// Writes the `count` numbers below `all` of the largest scores in descending order, of equal ones the first first.
template <class Score>
void pick_largest(std::int32_t* picks, std::int64_t count, std::int64_t all, const Score& score) {
  for (std::int64_t j = 0; j < count; ++j) {
    std::int32_t best = -1;
    for (std::int32_t e = 0; e < all; ++e) {
      const bool is_taken = std::find(picks, picks + j, e) != picks + j;
      if (!is_taken && (best < 0 || score(e) > score(best))) best = e;
    }
    picks[j] = best;
  }
}

void pick_experts(std::int32_t* picks, const float* row, const RouterSize& size, const float* bias) {
  const auto score = [&](std::int64_t e) { return bias == nullptr ? row[e] : row[e] + bias[e]; };
  if (size.groups_per_token == size.expert_groups) return pick_largest(picks, size.picks, size.experts, score);
  const std::int64_t each = size.experts / size.expert_groups;
  std::vector<std::int32_t> best(static_cast<std::size_t>(size.group_best()));
  std::vector<float> scores(static_cast<std::size_t>(size.expert_groups));
  for (std::int64_t group = 0; group < size.expert_groups; ++group) {
    const auto of_group = [&](std::int64_t e) { return score(group * each + e); };
    pick_largest(best.data(), size.group_best(), each, of_group);
    float& sum = scores[static_cast<std::size_t>(group)];
    for (const std::int32_t e : best) sum += of_group(e);
  }
  std::vector<std::int32_t> groups(static_cast<std::size_t>(size.groups_per_token));
  pick_largest(groups.data(), size.groups_per_token, size.expert_groups,
               [&](std::int64_t group) { return scores[static_cast<std::size_t>(group)]; });
  std::ranges::sort(groups);
  // The chosen groups' experts stand in a row, so that equal ones keep their order.
  const auto expert = [&](std::int64_t e) { return groups[static_cast<std::size_t>(e / each)] * each + e % each; };
  pick_largest(picks, size.picks, size.groups_per_token * each, [&](std::int64_t e) { return score(expert(e)); });
  std::transform(picks, picks + size.picks, picks,
                 [&](std::int32_t e) { return static_cast<std::int32_t>(expert(e)); });
}

float picked_sum(const float* row, const std::int32_t* picks, std::int64_t count) {
  float sum = 0;
  for (std::int64_t j = 0; j < count; ++j) sum += row[picks[j]];
  return sum;
}

}  // namespace

void router_forward(float* scores, std::int32_t* picks, const RouterSize& size, const float* bias) {
  for (std::int64_t t = 0; t < size.tokens; ++t) {
    float* row = scores + t * size.experts;
    if (size.sigmoid)
      for (std::int64_t e = 0; e < size.experts; ++e) row[e] = sigmoid(row[e]);
    else
      softmax(row, size.experts);
    pick_experts(picks + t * size.picks, row, size, bias);
  }
}

void add_excess_picks(float* excess, const std::int32_t* picks, const RouterSize& size) {
  const std::int64_t all = size.tokens * size.picks;
  for (std::int64_t i = 0; i < all; ++i) excess[picks[i]] += static_cast<float>(size.experts);
  for (std::int64_t e = 0; e < size.experts; ++e) excess[e] -= static_cast<float>(all);
}

void pick_weights(float* weights, const float* probabilities, const std::int32_t* picks, const RouterSize& size,
                  bool renormalised) {
  for (std::int64_t t = 0; t < size.tokens; ++t) {
    const float* row = probabilities + t * size.experts;
    const std::int32_t* own = picks + t * size.picks;
    const float scale = renormalised ? 1.0F / picked_sum(row, own, size.picks) : 1.0F;
    for (std::int64_t j = 0; j < size.picks; ++j) weights[t * size.picks + j] = scale * row[own[j]];
  }
}

void router_backward(float* probabilities, const float* weight_gradients, const std::int32_t* picks,
                     const RouterSize& size, bool renormalised, const float* added, std::int64_t tokens_a_row) {
  for (std::int64_t t = 0; t < size.tokens; ++t) {
    float* row = probabilities + t * size.experts;
    const float* dweights = weight_gradients + t * size.picks;
    const std::int32_t* own = picks + t * size.picks;
    const float* extra = added == nullptr ? nullptr : added + t / tokens_a_row * size.experts;
    // Renormalised, w_j = p_j / S and dp_j = (dw_j - sum_i dw_i w_i) / S; otherwise w_j = p_j.
    const float scale = renormalised ? 1.0F / picked_sum(row, own, size.picks) : 1.0F;
    float mean = 0;
    if (renormalised)
      for (std::int64_t j = 0; j < size.picks; ++j) mean += dweights[j] * scale * row[own[j]];
    // The softmax's gradient is ds_e = p_e (dp_e - sum p dp), the sigmoid's p_e (1 - p_e) dp_e.
    float dot = 0;
    if (!size.sigmoid)
      for (std::int64_t j = 0; j < size.picks; ++j) dot += row[own[j]] * scale * (dweights[j] - mean);
    if (!size.sigmoid && extra != nullptr)
      for (std::int64_t e = 0; e < size.experts; ++e) dot += row[e] * extra[e];
    for (std::int64_t e = 0; e < size.experts; ++e) {
      float gradient = extra == nullptr ? 0.0F : extra[e];
      for (std::int64_t j = 0; j < size.picks; ++j)
        if (own[j] == e) gradient += scale * (dweights[j] - mean);
      row[e] *= size.sigmoid ? (1.0F - row[e]) * gradient : gradient - dot;
    }
  }
}

}}  // namespace plumb::kernels
