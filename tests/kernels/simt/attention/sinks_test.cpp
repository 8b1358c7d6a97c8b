#include "kernels/simt/attention/sinks.h"

#include <doctest/doctest.h>

#include "kernels/cpu/attention/sinks.h"
#include "tests/kernels/simt/attention/run_attention.h"

namespace plumb::test {
namespace {

template <class S>
void check_sinks(const RunAttention& run, const AttentionSize& size) {
  const std::int64_t rows = size.batch * size.sequence, out = rows * size.output_width();
  const std::int64_t statistics = rows * size.heads;
  const std::vector<S> qkv = stored<S>(random_values(rows * (size.query_width() + size.key_value_width()), 1, 2.0F)),
                       doutput = stored<S>(random_values(out, 2));
  const Values sinks = random_values(size.heads, 3, 2.0F);
  Values scratch(attention_scratch_elements(size)), output(out), log_sum_exp(statistics), dqkv(qkv.size());
  attention_forward(output.data(), log_sum_exp.data(), widened_all(qkv).data(), size, scratch.data());
  add_sinks(output.data(), log_sum_exp.data(), sinks.data(), size);

  std::vector<S> own_output(out), own_dqkv(qkv.size());
  Values own_log_sum_exp(statistics), products(statistics), dsinks = random_values(size.heads, 4), own_dsinks = dsinks;
  const simt::AttentionView<S> of{.qkv = qkv.data(), .block = block_of_whole(size), .sinks = sinks.data()};
  const AttentionTensors<S> tensors{.output = own_output.data(),
                                    .log_sum_exp = own_log_sum_exp.data(),
                                    .doutput = doutput.data(),
                                    .dqkv = own_dqkv.data(),
                                    .products = products.data()};
  run.forward(of, tensors);
  CHECK(relative_difference(widened_all(own_output), output) < tolerance<S>());
  CHECK(relative_difference(own_log_sum_exp, log_sum_exp) < 2 * kFloatTolerance);

  // The backward sees the output as it is stored.
  const Values wide_output = widened_all(own_output), wide_gradient = widened_all(doutput);
  sinks_backward(dsinks.data(), wide_gradient.data(), wide_output.data(), own_log_sum_exp.data(), sinks.data(), size);
  attention_backward(dqkv.data(), wide_gradient.data(), widened_all(qkv).data(), wide_output.data(),
                     own_log_sum_exp.data(), size, scratch.data());
  run.backward(of, tensors);
  run_on_host(simt::SinkGradient{own_dsinks.data(), sinks.data(), own_log_sum_exp.data(), products.data(), size},
              kBlocks, kLanes);
  CHECK(relative_difference(widened_all(own_dqkv), dqkv) < 4 * tolerance<S>());
  CHECK(relative_difference(own_dsinks, dsinks) < 10 * kFloatTolerance);
}

}  // namespace

TEST_CASE_TEMPLATE("GPU attention with sinks equals the CPU's, forward and backward", S, float, Bf16, Fp16) {
  check_sinks<S>({.lanes = 32}, {.batch = 2, .sequence = 43, .heads = 4, .kv_heads = 2, .head_size = 12, .window = 9});
}

TEST_CASE_TEMPLATE("so it does on tensor cores", S, Bf16, Fp16) {
  check_sinks<S>({}, {.batch = 2, .sequence = 43, .heads = 4, .kv_heads = 2, .head_size = 64});
}

}  // namespace plumb::test
