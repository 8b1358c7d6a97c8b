#include "kernels/simt/warp_attention.h"

#include <random>

#include <doctest/doctest.h>

#include "kernels/simt/warp_attention_backward.h"
#include "tests/kernels/simt/host_block.h"
#include "tests/kernels/simt/stored.h"

using namespace plumb;
using namespace plumb::test;

namespace {

template <class S>
struct AttentionResult {
  std::vector<S> output, dqkv;
  Values log_sum_exp, products;
};

template <class S, int kChannels>
AttentionResult<S> on_warps(const std::vector<S>& qkv, const std::vector<S>& doutput, const AttentionSize& size,
                            int blocks, WarpOrder order) {
  const auto statistics = static_cast<std::size_t>(size.batch * size.heads * size.sequence);
  AttentionResult<S> result{.output = std::vector<S>(doutput.size()),
                            .dqkv = std::vector<S>(qkv.size()),
                            .log_sum_exp = Values(statistics),
                            .products = Values(statistics)};
  run_warps_on_host(
      simt::WarpAttentionForward<S, kChannels>{result.output.data(), result.log_sum_exp.data(), qkv.data(), size},
      blocks, order);
  run_warps_on_host(
      simt::WarpAttentionQueryGradient<S, kChannels>{result.dqkv.data(), result.products.data(), doutput.data(),
                                                     qkv.data(), result.output.data(), result.log_sum_exp.data(), size},
      blocks, order);
  run_warps_on_host(
      simt::WarpAttentionKeyValueGradient<S, kChannels>{result.dqkv.data(), result.products.data(), doutput.data(),
                                                        qkv.data(), result.log_sum_exp.data(), size},
      blocks, order);
  return result;
}

template <class S>
bool same_bits(const std::vector<S>& a, const std::vector<S>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(S)) == 0;
}

template <class S, int kChannels>
void check_warp_attention(const AttentionSize& size) {
  INFO("s " << size.sequence << " heads " << size.heads << "/" << size.kv_heads << " of " << size.head_size);
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  const std::int64_t rows = size.batch * size.sequence;
  const std::int64_t width = (size.heads + 2 * size.kv_heads) * size.head_size;
  const std::int64_t out = size.heads * size.head_size;
  const std::vector<S> qkv = stored<S>(random_values(rows * width, seed, 2.0F)),
                       doutput = stored<S>(random_values(rows * out, seed + 1));
  const AttentionResult<S> own = on_warps<S, kChannels>(qkv, doutput, size, 2, WarpOrder::kAscending);

  Values scratch(static_cast<std::size_t>(attention_scratch_elements(size))), output(doutput.size()),
      log_sum_exp(own.log_sum_exp.size()), dqkv(qkv.size());
  attention_forward(output.data(), log_sum_exp.data(), widened_all(qkv).data(), size, scratch.data());
  CHECK(relative_difference(widened_all(own.output), output) < tolerance<S>());
  CHECK(relative_difference(own.log_sum_exp, log_sum_exp) < 2 * kFloatTolerance);
  // The backward sees the output as it is stored.
  attention_backward(dqkv.data(), widened_all(doutput).data(), widened_all(qkv).data(), widened_all(own.output).data(),
                     own.log_sum_exp.data(), size, scratch.data());
  CHECK(relative_difference(widened_all(own.dqkv), dqkv) < 2 * tolerance<S>());

  const AttentionResult<S> other = on_warps<S, kChannels>(qkv, doutput, size, 5, WarpOrder::kDescending);
  CHECK(same_bits(other.output, own.output));
  CHECK(same_bits(other.dqkv, own.dqkv));
  CHECK(other.log_sum_exp == own.log_sum_exp);
}

}  // namespace

TEST_CASE_TEMPLATE("GPU attention on tensor cores equals the CPU's in any number of blocks and order of warps", S, Bf16,
                   Fp16) {
  check_warp_attention<S, 64>({.batch = 2, .sequence = 43, .heads = 3, .kv_heads = 1, .head_size = 64});
  check_warp_attention<S, 64>({.batch = 1, .sequence = 165, .heads = 2, .kv_heads = 2, .head_size = 40});
  check_warp_attention<S, 64>({.batch = 1, .sequence = 150, .heads = 2, .kv_heads = 1, .head_size = 64, .window = 70});
  check_warp_attention<S, 128>({.batch = 1, .sequence = 197, .heads = 2, .kv_heads = 1, .head_size = 128});
  check_warp_attention<S, 128>({.batch = 1, .sequence = 1, .heads = 1, .kv_heads = 1, .head_size = 96});
  check_warp_attention<S, 128>({.batch = 2, .sequence = 131, .heads = 1, .kv_heads = 1, .head_size = 72, .window = 5});
}

TEST_CASE("tensor cores take heads of up to 128 channels in pieces of 16 bytes") {
  CHECK(simt::fits_tensor_cores({.head_size = 64}));
  CHECK(simt::fits_tensor_cores({.head_size = 8}));
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 12}));
  CHECK_FALSE(simt::fits_tensor_cores({.head_size = 256}));
}
