#pragma once
// Runs the bodies of attention on the host, on the vector units or on tensor cores.

#include "kernels/simt/attention/attention.h"
#include "kernels/simt/attention/warp_key_value_gradient.h"
#include "kernels/simt/attention/warp_query_gradient.h"
#include "tests/kernels/simt/host_block.h"
#include "tests/kernels/simt/stored.h"

namespace plumb::test {

/// The tensors that the passes of a block write, and those that the backward reads besides the view.
template <class S>
struct AttentionTensors {
  S* output = nullptr;
  float *sums = nullptr, *log_sum_exp = nullptr;
  const S* doutput = nullptr;
  S* dqkv = nullptr;
  float *products = nullptr, *gradients = nullptr;
};

struct RunAttention {
  int lanes = 0;  ///< of a block on the vector units; 0: on tensor cores
  int blocks = 2;
  WarpOrder order = WarpOrder::kAscending;

  template <class S>
  void forward(const simt::AttentionView<S>& of, const AttentionTensors<S>& to) const {
    if (lanes > 0)
      return run_on_host(simt::AttentionForward<S>{to.output, to.sums, to.log_sum_exp, of}, kBlocks, lanes);
    simt::on_tensor_cores<S>(of.size(), [&]<int kChannels, int kValueChannels, simt::Scores kScores>() {
      using Body = simt::WarpAttentionForward<S, kChannels, kValueChannels, kScores>;
      run_warps_on_host(Body{to.output, to.sums, to.log_sum_exp, of.template with_width<kChannels == kValueChannels>()},
                        blocks, order);
    });
  }

  template <class S>
  void backward(const simt::AttentionView<S>& of, const AttentionTensors<S>& to) const {
    const auto run_both = [&]<class Queries, class Keys>(const auto& view, const auto& run, int of_queries,
                                                         int of_keys) {
      run(Queries{to.dqkv, to.sums, to.products, to.doutput, to.output, to.log_sum_exp, view}, of_queries);
      run(Keys{to.dqkv, to.gradients, to.products, to.doutput, to.log_sum_exp, view}, of_keys);
    };
    if (lanes > 0)
      return run_both.template operator()<simt::AttentionQueryGradient<S>, simt::AttentionKeyValueGradient<S>>(
          of, [&](const auto& body, int own_lanes) { run_on_host(body, kBlocks, own_lanes); }, lanes, 2 * lanes);
    simt::on_tensor_cores<S>(of.size(), [&]<int kChannels, int kValueChannels, simt::Scores kScores>() {
      run_both.template operator()<simt::WarpAttentionQueryGradient<S, kChannels, kValueChannels, kScores>,
                                   simt::WarpAttentionKeyValueGradient<S, kChannels, kValueChannels, kScores>>(
          of.template with_width<kChannels == kValueChannels>(),
          [&](const auto& body, int own_blocks) { run_warps_on_host(body, own_blocks, order); }, blocks, blocks);
    });
  }
};

}  // namespace plumb::test
