#include "kernels/cpu/router.h"

#include <algorithm>
#include <cmath>

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

void pick_largest(std::int32_t* picks, const float* row, const RouterSize& size, const float* bias) {
  const auto score = [&](std::int32_t e) { return bias == nullptr ? row[e] : row[e] + bias[e]; };
  for (std::int64_t j = 0; j < size.picks; ++j) {
    std::int32_t best = -1;
    for (std::int32_t e = 0; e < size.experts; ++e) {
      const bool is_taken = std::find(picks, picks + j, e) != picks + j;
      if (!is_taken && (best < 0 || score(e) > score(best))) best = e;
    }
    picks[j] = best;
  }
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
    pick_largest(picks + t * size.picks, row, size, bias);
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
