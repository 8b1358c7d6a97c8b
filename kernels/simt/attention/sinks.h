#pragma once
// Attention sinks on a GPU (kernels/cpu/attention/sinks.h has the formulas). A sink joins a row's softmax when the row
// ends, so that it costs no pass of its own.

#include "kernels/simt/attention/attention_view.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Returns a row's softmax with a sink in it.
PLUMB_SIMT MergedSoftmax with_sink(const MergedSoftmax& merged, float sink) {
  const float larger = Larger{}(merged.log_sum_exp, sink);
  const float whole = larger + logf(expf(merged.log_sum_exp - larger) + expf(sink - larger));
  const float shrink = expf(merged.log_sum_exp - whole);
  return {whole, shrink * merged.keep, shrink * merged.add};
}

/// dsinks[a] -= the sum over the queries of exp(sink - log-sum-exp) times the inner product of the output and its
/// gradient. A block takes a head. dsinks, sinks: [a]; log_sum_exp, products: [b, a, S], as the passes over keys and
/// queries write them
struct SinkGradient {
  float* dsinks;
  const float* sinks;
  const float* log_sum_exp;
  const float* products;
  AttentionSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t head = thread.block(); head < size.heads; head += thread.blocks()) {
      const float sum = sum_over_row(thread, size.batch * size.sequence, [&](std::int64_t query) {
        const std::int64_t batch = query / size.sequence, row = query % size.sequence;
        const std::int64_t at = (batch * size.heads + head) * size.sequence + row;
        return expf(sinks[head] - log_sum_exp[at]) * products[at];
      });
      if (thread.lane() == 0) dsinks[head] -= sum;
    }
  }
};

}}}  // namespace plumb::kernels::simt
