#include "kernels/cpu/attention/sinks.h"

#include <algorithm>
#include <cmath>

namespace plumb { inline namespace kernels {
namespace {

/// Calls visit(head, element of log_sum_exp, first element of the output) for each query.
template <class Visit>
void for_each_query(const AttentionSize& size, Visit visit) {
  for (std::int64_t b = 0; b < size.batch; ++b)
    for (std::int64_t head = 0; head < size.heads; ++head)
      for (std::int64_t i = 0; i < size.sequence; ++i)
        visit(head, (b * size.heads + head) * size.sequence + i,
              (b * size.sequence + i) * size.output_width() + head * size.value_channels());
}

}  // namespace

void add_sinks(float* output, float* log_sum_exp, const float* sinks, const AttentionSize& size) {
  for_each_query(size, [&](std::int64_t head, std::int64_t row, std::int64_t first) {
    const float without = log_sum_exp[row], largest = std::max(without, sinks[head]);
    log_sum_exp[row] = largest + std::log(std::exp(without - largest) + std::exp(sinks[head] - largest));
    const float scale = std::exp(without - log_sum_exp[row]);
    for (std::int64_t c = 0; c < size.value_channels(); ++c) output[first + c] *= scale;
  });
}

void sinks_backward(float* dsinks, const float* doutput, const float* output, const float* log_sum_exp,
                    const float* sinks, const AttentionSize& size) {
  for_each_query(size, [&](std::int64_t head, std::int64_t row, std::int64_t first) {
    float product = 0;
    for (std::int64_t c = 0; c < size.value_channels(); ++c) product += doutput[first + c] * output[first + c];
    dsinks[head] -= std::exp(sinks[head] - log_sum_exp[row]) * product;
  });
}

}}  // namespace plumb::kernels
