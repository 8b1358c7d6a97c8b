#pragma once
// The kernels of a context group's attention out of the bodies of kernels/simt (device/kernels/simt_kernels.h says what
// a Launcher is).

#include <cstdint>

#include "executor/device/kernels/simt_expert_kernels.h"
#include "kernels/simt/attention_block.h"
#include "kernels/simt/copy_columns.h"
#include "kernels/simt/exchange_heads.h"

namespace plumb {

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
                     rows_of(of.block.size, of.block.size.kv_heads), kBlockLanes);
  }

 protected:
  using Experts::launcher_;
  using Experts::stored;

 private:
  static constexpr int kBlockLanes = 128;  // keys of a tile
  static std::int64_t rows_of(const AttentionSize& size, std::int64_t heads) {
    return size.batch * heads * size.sequence;
  }
};

}  // namespace plumb
