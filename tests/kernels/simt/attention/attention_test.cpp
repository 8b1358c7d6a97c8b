#include "kernels/simt/attention/attention.h"

#include <doctest/doctest.h>

#include "tests/kernels/simt/attention/run_attention.h"

namespace plumb::test {
namespace {

template <class S>
void check_attention(const AttentionSize& size) {
  const std::int64_t rows = size.batch * size.sequence;
  const std::int64_t width = size.query_width() + size.key_value_width(), out = size.output_width();
  const std::int64_t statistics = size.batch * size.heads * size.sequence;
  const std::vector<S> qkv = stored<S>(random_values(rows * width, 1, 2.0F)),
                       doutput = stored<S>(random_values(rows * out, 2));
  Values scratch(attention_scratch_elements(size)), output(rows * out), log_sum_exp(statistics), dqkv(rows * width);
  attention_forward(output.data(), log_sum_exp.data(), widened_all(qkv).data(), size, scratch.data());

  std::vector<S> own_output(rows * out), own_dqkv(rows * width);
  Values own_log_sum_exp(statistics), products(statistics);
  const simt::AttentionView<S> of{.qkv = qkv.data(), .block = block_of_whole(size)};
  const AttentionTensors<S> tensors{.output = own_output.data(),
                                    .log_sum_exp = own_log_sum_exp.data(),
                                    .doutput = doutput.data(),
                                    .dqkv = own_dqkv.data(),
                                    .products = products.data()};
  constexpr RunAttention kRun{.lanes = 32};
  kRun.forward(of, tensors);
  CHECK(relative_difference(widened_all(own_output), output) < tolerance<S>());
  CHECK(relative_difference(own_log_sum_exp, log_sum_exp) < kFloatTolerance);

  // The backward sees the output as it is stored.
  attention_backward(dqkv.data(), widened_all(doutput).data(), widened_all(qkv).data(), widened_all(own_output).data(),
                     own_log_sum_exp.data(), size, scratch.data());
  kRun.backward(of, tensors);
  CHECK(relative_difference(widened_all(own_dqkv), dqkv) < 4 * tolerance<S>());
}

}  // namespace

TEST_CASE_TEMPLATE("GPU attention equals the CPU's, forward and backward", S, float, Bf16, Fp16) {
  check_attention<S>({.batch = 2, .sequence = 43, .heads = 3, .kv_heads = 1, .head_size = 12});
  check_attention<S>({.batch = 1, .sequence = 37, .heads = 4, .kv_heads = 2, .head_size = 70, .window = 9});
  check_attention<S>({.batch = 3, .sequence = 1, .heads = 1, .kv_heads = 1, .head_size = 256});
}

TEST_CASE_TEMPLATE("GPU attention takes values of another width than keys, as the CPU's does", S, float, Bf16) {
  check_attention<S>({.batch = 2, .sequence = 43, .heads = 3, .kv_heads = 3, .head_size = 24, .value_size = 15});
  check_attention<S>(
      {.batch = 1, .sequence = 37, .heads = 4, .kv_heads = 2, .head_size = 6, .window = 9, .value_size = 70});
}

TEST_CASE_TEMPLATE("GPU attention bounds scores as the CPU's does, forward and backward", S, float, Bf16, Fp16) {
  check_attention<S>(
      {.batch = 2, .sequence = 43, .heads = 4, .kv_heads = 2, .head_size = 12, .window = 30, .softcap = 1.5F});
}

TEST_CASE_TEMPLATE("GPU attention drops the probabilities that the CPU's drops, forward and backward", S, float, Bf16) {
  check_attention<S>(
      {.batch = 2,
       .sequence = 43,
       .heads = 4,
       .kv_heads = 2,
       .head_size = 12,
       .window = 30,
       .dropout = {.probability = 0.3, .key = {.seed = 5, .step = 2, .layer = 3}, .first_sample = 7, .first_head = 1}});
}

}  // namespace plumb::test
