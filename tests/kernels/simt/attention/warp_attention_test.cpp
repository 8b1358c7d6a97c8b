#include "kernels/simt/attention/warp_attention.h"

#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include "tests/kernels/simt/attention/run_attention.h"

namespace plumb::test {
namespace {

template <class S>
struct AttentionResult {
  std::vector<S> output, dqkv;
  Values log_sum_exp, products;
};

template <class S>
AttentionResult<S> on_warps(const std::vector<S>& qkv, const std::vector<S>& doutput, const AttentionSize& size,
                            int blocks, WarpOrder order) {
  const auto statistics = static_cast<std::size_t>(size.batch * size.heads * size.sequence);
  AttentionResult<S> result{.output = std::vector<S>(doutput.size()),
                            .dqkv = std::vector<S>(qkv.size()),
                            .log_sum_exp = Values(statistics),
                            .products = Values(statistics)};
  const simt::AttentionView<S> of{.qkv = qkv.data(), .block = block_of_whole(size)};
  const AttentionTensors<S> tensors{.output = result.output.data(),
                                    .log_sum_exp = result.log_sum_exp.data(),
                                    .doutput = doutput.data(),
                                    .dqkv = result.dqkv.data(),
                                    .products = result.products.data()};
  const RunAttention run{.blocks = blocks, .order = order};
  run.forward(of, tensors);
  run.backward(of, tensors);
  return result;
}

template <class S>
bool same_bits(const std::vector<S>& a, const std::vector<S>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(S)) == 0;
}

template <class S>
void check_warp_attention(const AttentionSize& size) {
  INFO("s " << size.sequence << " heads " << size.heads << "/" << size.kv_heads << " of " << size.head_size << "/"
            << size.value_channels());
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  const std::int64_t rows = size.batch * size.sequence;
  const std::int64_t width = size.query_width() + size.key_value_width(), out = size.output_width();
  const std::vector<S> qkv = stored<S>(random_values(rows * width, seed, 2.0F)),
                       doutput = stored<S>(random_values(rows * out, seed + 1));
  const AttentionResult<S> own = on_warps<S>(qkv, doutput, size, 2, WarpOrder::kAscending);

  Values scratch(static_cast<std::size_t>(attention_scratch_elements(size))), output(doutput.size()),
      log_sum_exp(own.log_sum_exp.size()), dqkv(qkv.size());
  attention_forward(output.data(), log_sum_exp.data(), widened_all(qkv).data(), size, scratch.data());
  CHECK(relative_difference(widened_all(own.output), output) < tolerance<S>());
  CHECK(relative_difference(own.log_sum_exp, log_sum_exp) < 2 * kFloatTolerance);
  // The backward sees the output as it is stored.
  attention_backward(dqkv.data(), widened_all(doutput).data(), widened_all(qkv).data(), widened_all(own.output).data(),
                     own.log_sum_exp.data(), size, scratch.data());
  CHECK(relative_difference(widened_all(own.dqkv), dqkv) < 2 * tolerance<S>());

  const AttentionResult<S> other = on_warps<S>(qkv, doutput, size, 5, WarpOrder::kDescending);
  CHECK(same_bits(other.output, own.output));
  CHECK(same_bits(other.dqkv, own.dqkv));
  CHECK(other.log_sum_exp == own.log_sum_exp);
}

/// Checks a slice; the keys of later slices are NaN.
template <class S>
void check_warp_slice(const AttentionSlice& slice) {
  INFO("tokens " << slice.first << " + " << slice.count << " of " << slice.size.sequence);
  AttentionSize size = slice.size;
  size.sequence = slice.count;
  const std::int64_t rows = size.batch * slice.count, out = size.output_width();
  const std::int64_t key_width = size.key_value_width(), statistics = rows * size.heads;
  const std::vector<S> qkv = stored<S>(random_values(rows * (size.query_width() + key_width), 1, 2.0F));
  const std::vector<S> doutput = stored<S>(random_values(rows * out, 2));
  Values kept = random_values(size.batch * slice.size.sequence * key_width, 3, 2.0F);
  for (std::int64_t i = 0; i < std::ssize(kept); ++i)
    if (i / key_width % slice.size.sequence >= slice.first + slice.count) kept[static_cast<std::size_t>(i)] = NAN;
  const std::vector<S> keys_values = stored<S>(kept);

  Values scratch(attention_scratch_elements(slice.size)), output(rows * out), log_sum_exp(statistics);
  Values own_log_sum_exp(statistics), products(statistics), dqkv(qkv.size());
  std::vector<S> own_output(rows * out), own_dqkv(qkv.size());
  const simt::AttentionView<S> of{.qkv = qkv.data(), .keys_values = keys_values.data(), .block = block_of_slice(slice)};
  AttentionTensors<S> tensors{.output = own_output.data(),
                              .log_sum_exp = own_log_sum_exp.data(),
                              .doutput = doutput.data(),
                              .dqkv = own_dqkv.data(),
                              .products = products.data()};
  RunAttention{}.forward(of, tensors);
  attention_slice_forward(output.data(), log_sum_exp.data(), widened_all(qkv).data(), widened_all(keys_values).data(),
                          slice, scratch.data());
  CHECK(relative_difference(widened_all(own_output), output) < tolerance<S>());
  CHECK(relative_difference(own_log_sum_exp, log_sum_exp) < 2 * kFloatTolerance);

  Values expected = random_values(std::ssize(kept), 4), gradients = expected;  // gradients from later slices
  const Values before = expected;
  attention_slice_backward(dqkv.data(), expected.data(), widened_all(doutput).data(), widened_all(qkv).data(),
                           widened_all(keys_values).data(), widened_all(own_output).data(), own_log_sum_exp.data(),
                           slice, scratch.data());
  tensors.gradients = gradients.data();
  RunAttention{}.backward(of, tensors);
  CHECK(relative_difference(widened_all(own_dqkv), dqkv) < 2 * tolerance<S>());
  CHECK(relative_difference(gradients, expected) < 2 * tolerance<S>());
  const Values first = gradients;
  gradients = before;
  RunAttention{.blocks = 5, .order = WarpOrder::kDescending}.backward(of, tensors);
  CHECK(gradients == first);
}

}  // namespace

TEST_CASE_TEMPLATE("GPU attention on tensor cores equals the CPU's in any number of blocks and order of warps", S, Bf16,
                   Fp16) {
  check_warp_attention<S>({.batch = 2, .sequence = 43, .heads = 3, .kv_heads = 1, .head_size = 64});
  check_warp_attention<S>({.batch = 1, .sequence = 165, .heads = 2, .kv_heads = 2, .head_size = 40});
  check_warp_attention<S>({.batch = 1, .sequence = 150, .heads = 2, .kv_heads = 1, .head_size = 64, .window = 70});
  check_warp_attention<S>({.batch = 1, .sequence = 197, .heads = 2, .kv_heads = 1, .head_size = 128});
  check_warp_attention<S>({.batch = 1, .sequence = 1, .heads = 1, .kv_heads = 1, .head_size = 96});
  check_warp_attention<S>({.batch = 2, .sequence = 131, .heads = 1, .kv_heads = 1, .head_size = 72, .window = 5});
}

TEST_CASE_TEMPLATE("they take heads of up to 256 channels, and those of latent attention with narrower values", S, Bf16,
                   Fp16) {
  check_warp_attention<S>({.batch = 1, .sequence = 99, .heads = 2, .kv_heads = 1, .head_size = 256});
  check_warp_attention<S>({.batch = 1, .sequence = 70, .heads = 1, .kv_heads = 1, .head_size = 136, .window = 33});
  check_warp_attention<S>(
      {.batch = 1, .sequence = 150, .heads = 2, .kv_heads = 2, .head_size = 192, .value_size = 128});
  check_warp_attention<S>(
      {.batch = 2, .sequence = 67, .heads = 2, .kv_heads = 1, .head_size = 96, .window = 40, .value_size = 64});
  check_warp_attention<S>({.batch = 1, .sequence = 40, .heads = 1, .kv_heads = 1, .head_size = 24, .value_size = 120});
}

TEST_CASE_TEMPLATE("they drop the probabilities that the CPU's drop", S, Bf16, Fp16) {
  const AttentionDropout dropout{
      .probability = 0.3, .key = {.seed = 5, .step = 2, .layer = 3}, .first_sample = 7, .first_head = 1};
  check_warp_attention<S>(
      {.batch = 2, .sequence = 135, .heads = 2, .kv_heads = 1, .head_size = 24, .window = 70, .dropout = dropout});
  check_warp_attention<S>(
      {.batch = 1, .sequence = 67, .heads = 1, .kv_heads = 1, .head_size = 128, .dropout = dropout});
  check_warp_attention<S>(
      {.batch = 1, .sequence = 67, .heads = 1, .kv_heads = 1, .head_size = 256, .dropout = dropout});
  check_warp_attention<S>(
      {.batch = 1, .sequence = 67, .heads = 2, .kv_heads = 1, .head_size = 192, .dropout = dropout, .value_size = 128});
}

TEST_CASE_TEMPLATE("they bound scores as the CPU's do", S, Bf16, Fp16) {
  check_warp_attention<S>(
      {.batch = 2, .sequence = 135, .heads = 2, .kv_heads = 1, .head_size = 40, .window = 70, .softcap = 1.5F});
  check_warp_attention<S>({.batch = 1, .sequence = 67, .heads = 1, .kv_heads = 1, .head_size = 128, .softcap = 0.5F});
  check_warp_attention<S>({.batch = 1, .sequence = 67, .heads = 2, .kv_heads = 1, .head_size = 256, .softcap = 50});
  check_warp_attention<S>(
      {.batch = 1, .sequence = 67, .heads = 2, .kv_heads = 1, .head_size = 192, .value_size = 128, .softcap = 1.5F});
}

TEST_CASE_TEMPLATE("slices of sequences on tensor cores attend to what came before as the CPU's do", S, Bf16, Fp16) {
  const AttentionSize size{.batch = 2, .sequence = 150, .heads = 2, .kv_heads = 1, .head_size = 64};
  check_warp_slice<S>({size, 0, 41});
  check_warp_slice<S>({size, 41, 70});
  check_warp_slice<S>({size, 111, 39});
  AttentionSize windowed = size;
  windowed.window = 20;  // the first tile of keys is behind all queries
  check_warp_slice<S>({windowed, 111, 39});
  check_warp_slice<S>({{.batch = 1, .sequence = 97, .heads = 2, .kv_heads = 2, .head_size = 72}, 33, 64});
  check_warp_slice<S>({{.batch = 1, .sequence = 70, .heads = 2, .kv_heads = 1, .head_size = 248}, 33, 37});
  check_warp_slice<S>(
      {{.batch = 1, .sequence = 70, .heads = 2, .kv_heads = 1, .head_size = 192, .value_size = 128}, 33, 37});
}

}  // namespace plumb::test
