#pragma once
// The softmax of a row of logits on a GPU, whose lanes divide the row. Each pass reads the row once.

#include "kernels/cpu/losses/vocab_parallel_cross_entropy.h"
#include "kernels/simt/exponential.h"
#include "kernels/simt/number.h"
#include "kernels/simt/softcap.h"
#include "kernels/simt/thread.h"
#include "kernels/simt/wide.h"

namespace plumb { inline namespace kernels { namespace simt {

/// The largest logit of a row, and the sum of exp(logit - largest).
struct SoftmaxRow {
  float largest, sum;
};

/// Returns those of the first `valid` logits of a row, under the part's softcap. Every lane of the block must call it.
template <class S, class Thread>
PLUMB_SIMT SoftmaxRow softmax_of_row(const Thread& thread, const S* row, const VocabPart& part, bool wide) {
  // Each lane sums up beside the largest logit that it has seen so far.
  float own_largest = -INFINITY, own_sum = 0;
  for_each_of_row<S>(thread, part.columns, wide, [&]<int N>(std::int64_t c) {
    float values[N];
    load_all(values, row + c);
    if (part.softcap > 0)
      for (float& value : values) value = softcapped(value, part.softcap);
    if (c + N > part.valid)
      for (int j = 0; j < N; ++j)
        if (c + j >= part.valid) values[j] = -INFINITY;
    float larger = own_largest;
    for (const float value : values) larger = Larger{}(larger, value);
    const float base = larger == -INFINITY ? 0.0F : larger;  // the difference of two infinities is no number
    own_sum *= power_of_e(own_largest - base);
    for (const float value : values) own_sum += power_of_e(value - base);
    own_largest = larger;
  });
  const float largest = combine_over_block(thread, own_largest, Larger{});
  const float share = own_sum > 0 ? own_sum * power_of_e(own_largest - largest) : 0.0F;
  return {largest, combine_over_block(thread, share, Add{})};
}

/// Replaces the logits of a row by scale * (softmax - one_hot(target)), times the slope of the softcap, and the padding
/// by zeros. A target outside of the row is no logit's.
template <class S, class Thread>
PLUMB_SIMT void replace_by_gradient(const Thread& thread, S* row, const VocabPart& part, bool wide,
                                    const SoftmaxRow& softmax, std::int64_t target, float scale) {
  const float factor = scale / softmax.sum;
  for_each_of_row<S>(thread, part.columns, wide, [&]<int N>(std::int64_t c) {
    float values[N], slopes[N];
    load_all(values, row + c);
    for (int j = 0; j < N; ++j) {
      values[j] = softcapped(values[j], part.softcap);
      slopes[j] = softcap_slope(values[j], part.softcap);
      values[j] = factor * power_of_e(values[j] - softmax.largest);
    }
    if (target >= c && target < c + N)
      for (int j = 0; j < N; ++j)
        if (c + j == target) values[j] -= scale;
    if (c + N > part.valid)
      for (int j = 0; j < N; ++j)
        if (c + j >= part.valid) values[j] = 0;
    for (int j = 0; j < N; ++j) values[j] *= slopes[j];
    store_all(row + c, values);
  });
}

}}}  // namespace plumb::kernels::simt
