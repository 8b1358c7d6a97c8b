#include "kernels/layer/fused_kernels.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/layer/experts.h"
#include "kernels/layer/kind_parts.h"
#include "kernels/layer/transformer_share.h"

namespace plumb { inline namespace kernels {
namespace {

constexpr std::int64_t kBehindResidual = 2;

/// Builds a block's lists call by call.
class FusedBlock {
 public:
  FusedBlock(const TransformerLayer& layer, const LayerWork& work, bool rebuilds_cheap)
      : layer_(layer),
        work_(work),
        rebuilds_cheap_(rebuilds_cheap),
        part_(share_of(layer, work.tensor_parallel)),
        tokens_(tokens_in(work)),
        rows_(residual_tokens_of(work)),
        gated_(layer.mlp == MlpKind::kSwiglu ? 1 : 0) {}

  std::vector<KernelCall> forward() {
    const bool drops = layer_.dropout > 0;
    const std::vector<std::int64_t> stream = {rows_, layer_.hidden};
    add(norm_call(KernelKind::kNormForward, rows_, layer_.hidden, layer_.norm));
    product(tokens_, part_.qkv_width, layer_.hidden, layer_.qkv_bias);
    rotary();
    attention(KernelKind::kAttentionForward);
    product(tokens_, layer_.hidden, part_.query_width, layer_.linear_bias && is_alone());
    if (layer_.linear_bias && !is_alone()) add(KernelKind::kBiasForward, stream);
    if (drops) add(KernelKind::kDropout, stream);
    if (!drops && layer_.parallel_residual) add(KernelKind::kResidualAdd, stream);
    const bool sums = !drops && !layer_.parallel_residual;
    add(KernelKind::kNormForward, {rows_, layer_.hidden, is_layer_norm(layer_.norm) + (sums ? kBehindResidual : 0)});
    feed_forward();
    if (drops && layer_.linear_bias && !is_alone() && layer_.experts == 0) add(KernelKind::kBiasForward, stream);
    add(drops ? KernelKind::kDropout : KernelKind::kResidualAdd, stream);
    return std::move(calls_);
  }

  std::vector<KernelCall> input_grad() {
    drop();
    if (layer_.experts > 0) {
      experts(Pass::kInputGrad);
    } else {
      add(gemm_call(tokens_, part_.ffn, layer_.hidden, GemmForm::kInputGrad));
      add(KernelKind::kActivationBackward, {tokens_, part_.ffn, gated_});
      add(gemm_call(tokens_, layer_.hidden, part_.up_width, GemmForm::kInputGrad));
    }
    add(norm_call(KernelKind::kNormBackward, rows_, layer_.hidden, layer_.norm));
    drop();
    add(gemm_call(tokens_, part_.query_width, layer_.hidden, GemmForm::kInputGrad));
    attention(KernelKind::kAttentionBackward);
    add(KernelKind::kCopy, {tokens_ * part_.qkv_width});
    rotary();
    add(gemm_call(tokens_, layer_.hidden, part_.qkv_width, GemmForm::kInputGrad));
    add(norm_call(KernelKind::kNormBackward, rows_, layer_.hidden, layer_.norm));
    return std::move(calls_);
  }

  std::vector<KernelCall> weight_grad() {
    drop();
    if (layer_.experts > 0) {
      experts(Pass::kWeightGrad);
    } else {
      row_parallel_gradient(part_.ffn);
      gradient(part_.up_width, layer_.linear_bias);
    }
    drop();
    row_parallel_gradient(part_.query_width);
    gradient(part_.qkv_width, layer_.qkv_bias);
    return std::move(calls_);
  }

  std::vector<KernelCall> rebuild_selective() {
    for (int norm = 0; norm < 2; ++norm) add(norm_call(KernelKind::kNormForward, rows_, layer_.hidden, layer_.norm));
    if (layer_.experts == 0) {
      add(KernelKind::kActivationForward, {tokens_, part_.ffn, gated_});
      return std::move(calls_);
    }
    std::vector<KernelCall> of_experts;
    append_expert_kernels(of_experts, layer_, work_, Pass::kForward, true);
    std::ranges::copy_if(of_experts, std::back_inserter(calls_),
                         [](const KernelCall& call) { return call.kind == KernelKind::kActivationForward; });
    return std::move(calls_);
  }

 private:
  void add(KernelCall call) { calls_.push_back(std::move(call)); }
  void add(KernelKind kind, std::vector<std::int64_t> shape) { add(kernel_call(kind, std::move(shape))); }

  /// True if no other rank adds to the sums of a product, so that the product itself may add its bias.
  bool is_alone() const { return work_.tensor_parallel == 1; }

  void product(std::int64_t m, std::int64_t n, std::int64_t k, bool bias) {
    add(gemm_call(m, n, k, bias ? GemmForm::kForwardBias : GemmForm::kForward));
  }
  void rotary() {
    if (layer_.rotary_size > 0) add(KernelKind::kRotary, {tokens_, part_.heads + part_.kv_heads, layer_.rotary_size});
  }
  void attention(KernelKind kind) {
    add(kind, {work_.microbatch, work_.sequence, part_.heads, part_.kv_heads, layer_.head_size, layer_.window});
  }
  /// Adds the kernel that drops a branch's gradient, as its forward did.
  void drop() {
    if (layer_.dropout > 0) add(KernelKind::kDropout, {rows_, layer_.hidden});
  }

  void experts(Pass pass) { append_expert_kernels(calls_, layer_, work_, pass, true); }

  void feed_forward() {
    if (layer_.experts > 0) return experts(Pass::kForward);
    const std::int64_t h = layer_.hidden;
    if (gated_ == 0 && !layer_.exact_gelu && !rebuilds_cheap_) {
      add(gemm_call(tokens_, part_.up_width, h, GemmForm::kForwardGelu));
    } else {
      product(tokens_, part_.up_width, h, layer_.linear_bias);
      add(KernelKind::kActivationForward, {tokens_, part_.ffn, gated_});
    }
    // Elsewhere the residual's sum adds the bias.
    product(tokens_, h, part_.ffn, layer_.linear_bias && is_alone() && layer_.dropout > 0);
  }

  void gradient(std::int64_t out, bool bias) {
    add(gemm_call(out, layer_.hidden, tokens_, bias ? GemmForm::kWeightGradBias : GemmForm::kWeightGrad));
  }
  void row_parallel_gradient(std::int64_t in) {
    // the bias's gradient sums a rank's own rows only
    const bool apart = layer_.linear_bias && work_.sequence_parallel;
    const bool bias = layer_.linear_bias && !apart;
    add(gemm_call(layer_.hidden, in, tokens_, bias ? GemmForm::kWeightGradBias : GemmForm::kWeightGrad));
    if (apart) add(KernelKind::kBiasBackward, {rows_, layer_.hidden});
  }

  const TransformerLayer& layer_;
  const LayerWork& work_;
  bool rebuilds_cheap_;
  TransformerShare part_;
  std::int64_t tokens_, rows_;  // T tokens, and the rows between products
  std::int64_t gated_;
  std::vector<KernelCall> calls_;
};

bool is_rebuilt_selectively(const KernelCall& call) {
  return call.kind == KernelKind::kNormForward || call.kind == KernelKind::kActivationForward;
}

/// Removes the bias kernels that the kernel behind them, of kind `taker`, includes.
void fuse_biases(LayerKernels& kernels, KernelKind taker) {
  std::vector<KernelCall>& calls = kernels.forward;
  for (std::size_t i = 0; i + 1 < calls.size(); ++i)
    if (calls[i].kind == KernelKind::kBiasForward && calls[i + 1].kind == taker)
      calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(i));
}

}  // namespace

LayerKernels plain_kernels(const Layer& layer, const LayerWork& work) {
  LayerKernels kernels{.forward = layer_kernels(layer, work, Pass::kForward),
                       .input_grad = layer_kernels(layer, work, Pass::kInputGrad),
                       .weight_grad = layer_kernels(layer, work, Pass::kWeightGrad),
                       .rebuild_selective = {}};
  std::ranges::copy_if(kernels.forward, std::back_inserter(kernels.rebuild_selective), is_rebuilt_selectively);
  return kernels;
}

LayerKernels fused_kernels(const Layer& layer, const LayerWork& work, bool rebuilds_cheap) {
  if (const auto* block = std::get_if<TransformerLayer>(&layer)) {
    const auto lists = [&] { return FusedBlock(*block, work, rebuilds_cheap); };
    return {.forward = lists().forward(),
            .input_grad = lists().input_grad(),
            .weight_grad = lists().weight_grad(),
            .rebuild_selective = lists().rebuild_selective()};
  }
  LayerKernels kernels = plain_kernels(layer, work);
  if (!std::holds_alternative<HeadLayer>(layer)) kernels.rebuild_selective.clear();  // these keep all outputs
  fuse_biases(kernels, KernelKind::kReluForward);
  if (std::holds_alternative<MlpLayer>(layer)) fuse_biases(kernels, KernelKind::kResidualAdd);
  if (const auto* input = std::get_if<InputLayer>(&layer))
    kernels.forward.push_back(kernel_call(KernelKind::kCopy, {output_elements(*input, work)}));
  if (const auto* loss = std::get_if<LossLayer>(&layer))
    kernels.input_grad.push_back(kernel_call(KernelKind::kCopy, {tokens_in(work) * loss->width}));
  return kernels;
}

}}  // namespace plumb::kernels
