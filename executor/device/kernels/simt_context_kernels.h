#pragma once
// Makes the kernels for a context group's attention, and for slices, from the bodies of kernels/simt
// (device/kernels/simt_kernels.h defines a Launcher).

#include <cstdint>

#include "executor/device/kernels/simt_expert_kernels.h"
#include "kernels/simt/attention/attention_block.h"
#include "kernels/simt/attention/exchange_heads.h"
#include "kernels/simt/attention/warp_attention.h"
#include "kernels/simt/attention/warp_attention_backward.h"
#include "kernels/simt/copy_columns.h"

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

  void attention_block_forward(void* output, float* sums, float* log_sum_exp, const BlockOperands& of) override {
    launcher_.launch(simt::AttentionBlockForward<S>{stored(output), sums, log_sum_exp, stored(of.qkv),
                                                    stored(of.keys_values), of.block, of.numbers},
                     rows_of(of.block.size, of.block.size.heads), kBlockLanes);
  }
  void attention_block_backward(void* dqkv, float* gradients, float* sums, float* products, const void* doutput,
                                const void* output, const float* log_sum_exp, const BlockOperands& of) override {
    launcher_.launch(
        simt::AttentionBlockQueryGradient<S>{stored(dqkv), sums, products, stored(doutput), stored(of.qkv),
                                             stored(of.keys_values), stored(output), log_sum_exp, of.block, of.numbers},
        rows_of(of.block.size, of.block.size.heads), kBlockLanes);
    launcher_.launch(simt::AttentionBlockKeyValueGradient<S>{gradients, products, stored(doutput), stored(of.qkv),
                                                             stored(of.keys_values), log_sum_exp, of.block, of.numbers},
                     of.block.size.batch * of.block.size.kv_heads * of.block.keys_seen(), kBlockLanes);
  }
  void attention_slice_forward(void* output, float* log_sum_exp, const SliceOperands& of) override {
    const AttentionBlock block = block_of_slice(of.slice);
    if (on_tensor_cores(block.size, [&]<int kChannels>() {
          using Body = simt::WarpAttentionForward<S, kChannels, simt::KeptKeys<S>>;
          launcher_.launch_warps(Body{stored(output), log_sum_exp, stored(of.qkv), block.size, kept_keys(of)});
        }))
      return;
    attention_block_forward(output, nullptr, log_sum_exp, {of.qkv, of.keys_values, block, of.numbers});
  }
  void attention_slice_backward(void* dqkv, float* gradients, float* products, const void* doutput, const void* output,
                                const float* log_sum_exp, const SliceOperands& of) override {
    const AttentionBlock block = block_of_slice(of.slice);
    if (on_tensor_cores(block.size, [&]<int kChannels>() {
          using Queries = simt::WarpAttentionQueryGradient<S, kChannels, simt::KeptKeys<S>>;
          using KeysAndValues = simt::WarpAttentionKeyValueGradient<S, kChannels, simt::KeptKeys<S>>;
          launcher_.launch_warps(Queries{stored(dqkv), products, stored(doutput), stored(of.qkv), stored(output),
                                         log_sum_exp, block.size, kept_keys(of)});
          launcher_.launch_warps(KeysAndValues{gradients, products, stored(doutput), stored(of.qkv), log_sum_exp,
                                               block.size, kept_keys(of)});
        }))
      return;
    attention_block_backward(dqkv, gradients, nullptr, products, doutput, output, log_sum_exp,
                             {of.qkv, of.keys_values, block, of.numbers});
  }

 protected:
  using Experts::launcher_;
  using Experts::stored;

  /// Calls run<kChannels>() and returns true if tensor cores take the format and the heads.
  template <class Run>
  static bool on_tensor_cores(const AttentionSize& size, const Run& run) {
    if constexpr (sizeof(S) == 2) {
      if (!simt::fits_tensor_cores(size)) return false;
      if (size.head_size <= 64)
        run.template operator()<64>();
      else
        run.template operator()<128>();
      return true;
    } else {
      return false;
    }
  }

 private:
  static simt::KeptKeys<S> kept_keys(const SliceOperands& of) {
    return {stored(of.keys_values), of.slice.first, of.slice.size.sequence};
  }
  static constexpr int kBlockLanes = 128;  // keys of a tile
  static std::int64_t rows_of(const AttentionSize& size, std::int64_t heads) {
    return size.batch * heads * size.sequence;
  }
};

}}  // namespace plumb::executor
