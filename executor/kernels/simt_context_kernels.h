#pragma once
// Makes the kernels for attention, also of a context group and of slices, from the bodies of kernels/simt
// (device/kernels/simt_kernels.h defines a Launcher).

#include <cstdint>

#include "executor/kernels/simt_expert_kernels.h"
#include "kernels/simt/attention/attention.h"
#include "kernels/simt/attention/exchange_heads.h"
#include "kernels/simt/attention/warp_attention.h"
#include "kernels/simt/attention/warp_key_value_gradient.h"
#include "kernels/simt/attention/warp_query_gradient.h"
#include "kernels/simt/copy_columns.h"
#include "kernels/simt/latent_heads.h"

namespace plumb { inline namespace executor {

template <class S, class Launcher>
class SimtContextKernels : public SimtExpertKernels<S, Launcher> {
  using Experts = SimtExpertKernels<S, Launcher>;

 public:
  using Experts::Experts;

  void split_heads(void* blocks, const void* rows, const HeadShares& size) override {
    launcher_.launch_elements(simt::SplitHeads<S>{stored(blocks), stored(rows), size}, size.rows * size.width());
  }
  void join_heads(void* rows, const void* blocks, const HeadShares& size) override {
    launcher_.launch_elements(simt::JoinHeads<S>{stored(rows), stored(blocks), size}, size.rows * size.width());
  }
  void transpose_blocks(void* to, const void* from, const BlockMatrix& size) override {
    launcher_.launch_elements(simt::TransposeBlocks<S>{stored(to), stored(from), size},
                              size.rows * size.columns * size.elements);
  }
  void narrow_columns(void* to, std::int64_t to_width, const float* from, const NormSize& size) override {
    launcher_.launch_elements(simt::NarrowColumns<S>{stored(to), from, to_width, size}, size.rows * size.columns);
  }

  void join_latent_heads(void* qkv, const void* queries, const void* shared, const void* keys_values,
                         const LatentHeads& size) override {
    launcher_.launch_elements(
        simt::JoinLatentHeads<S>{stored(qkv), stored(queries), stored(shared), stored(keys_values), size},
        size.rows * size.heads * (2 * size.head_size + size.value_size));
  }
  void split_latent_heads(void* dqueries, void* dshared, void* dkeys_values, const void* dqkv,
                          const LatentHeads& size) override {
    launcher_.launch_elements(
        simt::SplitLatentHeads<S>{stored(dqueries), stored(dshared), stored(dkeys_values), stored(dqkv), size},
        size.rows * (size.heads * (size.head_size + size.key_value_size()) + size.shared));
  }

  void attention_forward(void* output, float* sums, float* log_sum_exp, const AttentionOperands& of) override {
    const simt::AttentionView<S> view = view_of(of);
    const AttentionSize& size = view.size();
    if (simt::on_tensor_cores<S>(size, [&]<int kChannels, int kValueChannels, simt::Scores kScores>() {
          using Body = simt::WarpAttentionForward<S, kChannels, kValueChannels, kScores>;
          launcher_.launch_warps(
              Body{stored(output), sums, log_sum_exp, view.template with_width<kChannels == kValueChannels>()});
        }))
      return;
    launcher_.launch(simt::AttentionForward<S>{stored(output), sums, log_sum_exp, view},
                     size.batch * size.heads * size.sequence, kAttentionLanes);
  }
  void attention_backward(void* dqkv, float* gradients, float* sums, float* products, const void* doutput,
                          const void* output, const float* log_sum_exp, const AttentionOperands& of) override {
    gradients_of_attention(dqkv, gradients, sums, products, doutput, output, log_sum_exp, of);
    if (of.dsinks == nullptr) return;
    const AttentionSize& size = of.block.size;
    launcher_.launch(simt::SinkGradient{of.dsinks, of.sinks, log_sum_exp, products, size}, size.heads, kSinkLanes);
  }

 protected:
  using Experts::launcher_;
  using Experts::stored;

 private:
  static constexpr int kAttentionLanes = 128;  // keys of a tile
  static constexpr int kSinkLanes = 256;

  static simt::AttentionView<S> view_of(const AttentionOperands& of) {
    return {stored(of.qkv), stored(of.keys_values), of.block, of.numbers, of.sinks};
  }

  void gradients_of_attention(void* dqkv, float* gradients, float* sums, float* products, const void* doutput,
                              const void* output, const float* log_sum_exp, const AttentionOperands& of) {
    const simt::AttentionView<S> view = view_of(of);
    const AttentionSize& size = view.size();
    if (simt::on_tensor_cores<S>(size, [&]<int kChannels, int kValueChannels, simt::Scores kScores>() {
          using Queries = simt::WarpAttentionQueryGradient<S, kChannels, kValueChannels, kScores>;
          using KeysAndValues = simt::WarpAttentionKeyValueGradient<S, kChannels, kValueChannels, kScores>;
          const auto own = view.template with_width<kChannels == kValueChannels>();
          launcher_.launch_warps(
              Queries{stored(dqkv), sums, products, stored(doutput), stored(output), log_sum_exp, own});
          launcher_.launch_warps(KeysAndValues{stored(dqkv), gradients, products, stored(doutput), log_sum_exp, own});
        }))
      return;
    launcher_.launch(simt::AttentionQueryGradient<S>{stored(dqkv), sums, products, stored(doutput), stored(output),
                                                     log_sum_exp, view},
                     size.batch * size.heads * size.sequence, kAttentionLanes);
    launcher_.launch(
        simt::AttentionKeyValueGradient<S>{stored(dqkv), gradients, products, stored(doutput), log_sum_exp, view},
        size.batch * size.kv_heads * view.block.keys_seen(), kAttentionLanes);
  }
};

}}  // namespace plumb::executor
