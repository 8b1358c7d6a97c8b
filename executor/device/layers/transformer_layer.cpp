// A decoder block on a device. Symbols are those of kernels/layer.h: T tokens, h hidden, q = a*d, w = (a+2k)*d, f
// feed-forward, u = 2f (gated) or f. A gradient takes the storage of a kept tensor that is not needed any more: after
// the input gradient, `residual`, `up` and `qkv` hold their own gradients. With a parallel residual both branches read
// the block's input, and their sum is not kept.

#include <algorithm>
#include <optional>
#include <string>

#include "executor/cpu/layers/block_attention.h"
#include "executor/device/layers/block_attention.h"
#include "executor/device/layers/device_experts.h"
#include "executor/device/layers/device_layer.h"
#include "executor/device/layers/device_norm.h"

namespace plumb { inline namespace executor {
namespace {

class DeviceTransformer : public DeviceLayer {
 public:
  DeviceTransformer(const TransformerLayer& layer, const LayerWork& work, std::int64_t element_bytes,
                    const DeviceTensorShare& share)
      : layer_(layer),
        work_(work),
        share_(share),
        rows_(tokens_of(work)),
        own_(own_rows_of(work)),
        query_(layer.heads * layer.head_size),
        qkv_width_((layer.heads + 2 * layer.kv_heads) * layer.head_size),
        up_width_(layer.mlp == MlpKind::kSwiglu ? 2 * layer.ffn : layer.ffn),
        element_bytes_(element_bytes),
        attention_{.batch = work.microbatch,
                   .sequence = work.sequence,
                   .heads = layer.heads,
                   .kv_heads = layer.kv_heads,
                   .head_size = layer.head_size,
                   .window = layer.window},
        rotary_{.tokens = rows_,
                .sequence = work.sequence,
                .heads = layer.heads + layer.kv_heads,
                .head_size = layer.head_size,
                .row_width = qkv_width_,
                .rotary_size = layer.rotary_size},
        at_(places_of(layer)),
        norm1_(place_norm(layer, "norm1", layer.norm, own_, bytes_)),
        norm2_(place_norm(layer, "norm2", layer.norm, own_, bytes_)) {
    const std::int64_t row = rows_ * element_bytes, own = own_ * element_bytes;
    const std::int64_t statistics = rows_ * layer.heads * std::int64_t{sizeof(float)};
    const auto early = [&](std::int64_t bytes) { return place_tensor(DevicePlace::kEarly, bytes_.early, bytes); };
    const auto late = [&](std::int64_t bytes) { return place_tensor(DevicePlace::kLate, bytes_.late, bytes); };
    const auto cheap = [&](std::int64_t bytes) { return place_tensor(DevicePlace::kCheap, bytes_.cheap, bytes); };
    input_ = early(own * layer.hidden);
    log_sum_exp_ = early(statistics);
    norm1_output_ = cheap(own * layer.hidden);
    qkv_ = late(row * qkv_width_);
    attention_output_ = late(row * query_);
    if (!layer.parallel_residual) residual_ = late(own * layer.hidden);
    norm2_output_ = cheap(own * layer.hidden);
    if (layer.experts == 0) {
      up_ = late(row * up_width_);
      activated_ = cheap(row * layer.ffn);
    }
    output_gradient_ = late(own * layer.hidden);

    branch_ = place_tensor(DevicePlace::kWorkspace, bytes_.forward_workspace, row * layer.hidden);
    norm_gradient_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, row * layer.hidden);
    mlp_input_ = stream_gradient_ = attention_branch_gradient_ = residual_;
    if (layer.parallel_residual) {
      mlp_input_ = input_;
      attention_branch_gradient_ = output_gradient_;
      residual_ = place_tensor(DevicePlace::kWorkspace, bytes_.forward_workspace, own * layer.hidden);
      stream_gradient_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, own * layer.hidden);
    }
    if (layer.dropout > 0)
      dropped_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, own * layer.hidden);
    if (work.sequence_parallel)
      replicated_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace,
                                 2 * layer.hidden * std::int64_t{sizeof(float)});
    // The backward of the MLP, or of the experts, is over when that of attention begins.
    if (layer.experts > 0 && work.sequence_parallel)
      gathered_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, row * layer.hidden);
    std::int64_t of_attention = bytes_.backward_workspace;
    if (layer.experts > 0)
      experts_.emplace(layer, work, share, element_bytes, bytes_);
    else
      activated_gradient_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, row * layer.ffn);
    attention_gradient_ = place_tensor(DevicePlace::kWorkspace, of_attention, row * query_);
    qkv_gradient_ = place_tensor(DevicePlace::kWorkspace, of_attention, row * qkv_width_);
    products_ = place_tensor(DevicePlace::kWorkspace, of_attention, statistics);
    if (share.kv_sharers > 1)
      shared_ =
          place_tensor(DevicePlace::kWorkspace, of_attention,
                       share.ranks / share.kv_sharers * row * (qkv_width_ - query_) + std::int64_t{sizeof(float)});
    std::int64_t of_forward = 0;  // from 0, since branch_ is not in use beside attention
    attend_.emplace(attention_, share, element_bytes, of_forward, of_attention, bytes_);
    bytes_.forward_workspace = std::max(bytes_.forward_workspace, of_forward);
    bytes_.backward_workspace = std::max(bytes_.backward_workspace, of_attention);
  }

  DeviceLayerBytes bytes() const override { return bytes_; }
  std::vector<float> constants() const override {
    if (layer_.rotary_size == 0) return {};
    const std::vector<float> whole = rotary_table(share_.sequence, layer_.rotary_size, layer_.rope_theta);
    const ContextTokens tokens = context_tokens(share_.slice, share_.context);
    std::vector<float> own;
    for (const TokenRange& run : {tokens.first, tokens.second})
      own.insert(own.end(), whole.begin() + run.first * layer_.rotary_size,
                 whole.begin() + (run.first + run.count) * layer_.rotary_size);
    return own;
  }
  DeviceTensor input() const override { return input_; }
  DeviceTensor output_gradient() const override { return output_gradient_; }

  void forward(const DeviceLayerCall& call, void* output) const override;
  void rebuild_cheap(const DeviceLayerCall& call) const override;
  void input_grad(const DeviceLayerCall& call, void* input_gradient) const override;
  void weight_grad(const DeviceLayerCall& call) const override;

 private:
  /// Elements from the layer's first parameter; -1: none.
  struct Places {
    std::int64_t qkv, qkv_bias, output, output_bias, up, up_bias, down, down_bias;
  };

  static Places places_of(const TransformerLayer& layer) {
    const auto offset = [&](const std::string& name) { return parameter_offset(layer, name); };
    const std::string up = layer.mlp == MlpKind::kSwiglu ? "gate_up" : "up";
    return {.qkv = offset("qkv.weight"),
            .qkv_bias = offset("qkv.bias"),
            .output = offset("attention_output.weight"),
            .output_bias = offset("attention_output.bias"),
            .up = offset(up + ".weight"),
            .up_bias = offset(up + ".bias"),
            .down = offset("down.weight"),
            .down_bias = offset("down.bias")};
  }

  const std::byte* weight(const DeviceLayerCall& call, std::int64_t at) const {
    return call.weights + at * element_bytes_;
  }
  DeviceBias bias_at(const DeviceLayerCall& call, std::int64_t at) const {
    if (at < 0) return {};
    return {.values = call.vector(at), .stored = weight(call, at)};
  }
  /// y = x W^T, plus the bias if there is one.
  void multiply(const DeviceLayerCall& call, DeviceTensor y, const std::byte* x, std::int64_t at, std::int64_t bias,
                const GemmSize& size) const {
    if (bias < 0) return call.kernels.linear_forward(address_of(call, y), x, weight(call, at), size);
    call.kernels.linear_bias_forward(address_of(call, y), x, weight(call, at), bias_at(call, bias), size);
  }
  /// True if no other rank adds to the sums of a product, so that the product itself may add its bias.
  bool is_alone() const { return share_.ranks == 1; }
  /// Adds a bias to all rows, or to the own ones.
  void add_bias(const DeviceLayerCall& call, void* y, std::int64_t bias, std::int64_t rows,
                std::int64_t columns) const {
    if (bias >= 0) call.kernels.bias_forward(y, call.vector(bias), rows, columns);
  }
  std::byte* all_rows(const DeviceLayerCall& call, DeviceTensor own, DeviceTensor gathered) const {
    return call.tensor.all_rows(address_of(call, own), address_of(call, gathered), rows_ * layer_.hidden,
                                element_bytes_);
  }
  /// Returns the rows of the sum over the tensor group: the own rows, or all. partial: [T, h]
  std::byte* sum_rows(const DeviceLayerCall& call, DeviceTensor partial) const {
    return call.tensor.sum_rows(address_of(call, partial), rows_ * layer_.hidden, element_bytes_);
  }
  /// Returns attention_ with the mask of this micro-batch's probabilities.
  AttentionSize attention_of(const DeviceLayerCall& call) const {
    AttentionSize size = attention_;
    size.dropout = {.probability = layer_.dropout,
                    .key = dropout_key(call, kProbabilities),
                    .first_sample = call.first_sample,
                    .first_head = call.tensor.rank() * layer_.heads};
    return size;
  }
  /// to = residual + dropout of the branch's result.
  void drop_branch(const DeviceLayerCall& call, BlockDropout branch, void* to, const std::byte* result,
                   DeviceTensor residual) const {
    drop_rows(call, branch, static_cast<std::byte*>(to), result, address_of(call, residual), work_, layer_.hidden,
              layer_.dropout, element_bytes_);
  }
  /// Returns the gradient of a branch before its dropout.
  DeviceTensor branch_gradient(const DeviceLayerCall& call, BlockDropout branch, DeviceTensor gradient) const {
    if (layer_.dropout == 0) return gradient;
    drop_rows(call, branch, address_of(call, dropped_), address_of(call, gradient), nullptr, work_, layer_.hidden,
              layer_.dropout, element_bytes_);
    return dropped_;
  }
  // These compute from norm 2's output to the branch's end, before a tensor group's sum and the last bias; and back.
  void feed_forward(const DeviceLayerCall& call) const;
  void feed_forward_input_grad(const DeviceLayerCall& call) const;
  void feed_forward_weight_grad(const DeviceLayerCall& call) const;

  /// Add the gradients of a product whose output is divided by rows, and of one whose input is.
  void row_parallel_gradient(const DeviceLayerCall& call, std::int64_t at, std::int64_t bias, DeviceTensor dy,
                             DeviceTensor x, std::int64_t in) const {
    const std::int64_t h = layer_.hidden;
    const GemmSize size{h, in, rows_};
    float* const weights = call.gradients + at;
    const std::byte* const rows = all_rows(call, dy, norm_gradient_);
    if (bias >= 0 && !call.tensor.divides_rows)
      return call.kernels.linear_bias_weight_grad(weights, call.gradients + bias, rows, address_of(call, x), size);
    call.kernels.linear_weight_grad(weights, rows, address_of(call, x), size);
    if (bias < 0) return;
    call.tensor.add_replicated(call.gradients + bias, floats_of(call, replicated_), h,
                               [&](float* to) { call.kernels.bias_backward(to, address_of(call, dy), own_, h); });
  }
  void column_parallel_gradient(const DeviceLayerCall& call, std::int64_t at, std::int64_t bias, DeviceTensor dy,
                                DeviceTensor x, std::int64_t out) const {
    const GemmSize size{out, layer_.hidden, rows_};
    const std::byte* const rows = all_rows(call, x, norm_gradient_);
    if (bias < 0) return call.kernels.linear_weight_grad(call.gradients + at, address_of(call, dy), rows, size);
    call.kernels.linear_bias_weight_grad(call.gradients + at, call.gradients + bias, address_of(call, dy), rows, size);
  }
  /// Replaces the gradients of keys and values that neighbouring ranks share by their sum. It is one sum over the whole
  /// group, in which each set of sharers has columns of its own.
  void sum_shared_heads(const DeviceLayerCall& call) const {
    if (share_.kv_sharers == 1) return;
    const std::int64_t columns = qkv_width_ - query_, each = rows_ * columns * element_bytes_;
    const std::int64_t sets = share_.ranks / share_.kv_sharers, set = share_.rank / share_.kv_sharers;
    std::byte* const all = address_of(call, shared_);
    std::byte* const own = all + set * each;
    std::byte* const heads = address_of(call, qkv_) + query_ * element_bytes_;
    call.kernels.fill_zero(reinterpret_cast<float*>(all), (sets * each + 3) / 4);
    call.kernels.copy_columns(own, columns, heads, qkv_width_, {rows_, columns});
    call.tensor.sum(all, sets * rows_ * columns);
    call.kernels.copy_columns(heads, qkv_width_, own, columns, {rows_, columns});
  }

  TransformerLayer layer_;
  LayerWork work_;
  DeviceTensorShare share_;
  std::int64_t rows_, own_;  // T rows, and R own rows: T, or the block that a rank has between products
  std::int64_t query_, qkv_width_, up_width_, element_bytes_;
  AttentionSize attention_;
  RotarySize rotary_;
  Places at_;
  DeviceLayerBytes bytes_;
  DeviceLayerNorm norm1_, norm2_;
  std::optional<DeviceExperts> experts_;  // in the place of the MLP
  std::optional<DeviceBlockAttention> attend_;
  DeviceTensor input_;             // [R, h]
  DeviceTensor log_sum_exp_;       // [b, a, s], fp32
  DeviceTensor norm1_output_;      // [R, h]
  DeviceTensor qkv_;               // [T, w]
  DeviceTensor attention_output_;  // [T, q]
  // [R, h]: the input plus attention's branch; input of norm 2.
  DeviceTensor residual_, mlp_input_;
  DeviceTensor norm2_output_;     // [R, h]
  DeviceTensor up_;               // [T, u]
  DeviceTensor activated_;        // [T, f]
  DeviceTensor output_gradient_;  // [R, h]
  DeviceTensor branch_;           // [T, h]
  DeviceTensor norm_gradient_;    // [T, h]
  // [R, h]: gradient between attention and MLP; gradient of attention's branch.
  DeviceTensor stream_gradient_, attention_branch_gradient_;
  DeviceTensor dropped_;             // [R, h] a branch's gradient, if there is dropout
  DeviceTensor activated_gradient_;  // [T, f]
  DeviceTensor attention_gradient_;  // [T, q]
  DeviceTensor qkv_gradient_;        // [T, w]
  DeviceTensor products_;            // [b, a, s], fp32
  DeviceTensor replicated_;          // [2h], fp32, where rows are divided
  DeviceTensor gathered_;            // [T, h], input of experts where rows are divided
  DeviceTensor shared_;              // [t / sharers, T, w - q], if ranks have the same kv heads
};

void DeviceTransformer::feed_forward(const DeviceLayerCall& call) const {
  DeviceKernels& kernels = call.kernels;
  const std::int64_t h = layer_.hidden;
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  if (experts_) return experts_->forward(call, at(branch_), all_rows(call, norm2_output_, branch_));
  const std::byte* const rows = all_rows(call, norm2_output_, branch_);
  const GemmSize up{rows_, up_width_, h};
  // The activation that is rebuilt from `up` must have the bits of the kernel that rebuilds it.
  if (layer_.mlp == MlpKind::kGelu && !layer_.exact_gelu && !call.rebuilds_cheap) {
    kernels.linear_gelu_forward(at(activated_), at(up_), rows, weight(call, at_.up), bias_at(call, at_.up_bias), up);
  } else {
    multiply(call, up_, rows, at_.up, at_.up_bias, up);
    kernels.activation_forward(layer_, at(activated_), at(up_), rows_);
  }
  const bool adds_bias = is_alone() && layer_.dropout > 0;  // otherwise it is added with the residual
  multiply(call, branch_, at(activated_), at_.down, adds_bias ? at_.down_bias : -1, {rows_, h, layer_.ffn});
}

/// Computes norm_gradient_ from the output's gradient.
void DeviceTransformer::feed_forward_input_grad(const DeviceLayerCall& call) const {
  DeviceKernels& kernels = call.kernels;
  const std::int64_t h = layer_.hidden;
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  const DeviceTensor gradient = branch_gradient(call, kFeedForwardBranch, output_gradient_);
  if (experts_) return experts_->input_grad(call, at(norm_gradient_), all_rows(call, gradient, gathered_));
  kernels.linear_input_grad(at(activated_gradient_), all_rows(call, gradient, norm_gradient_), weight(call, at_.down),
                            {rows_, layer_.ffn, h});
  kernels.activation_backward(layer_, at(up_), at(activated_gradient_), rows_);
  kernels.linear_input_grad(at(norm_gradient_), at(up_), weight(call, at_.up), {rows_, h, up_width_});
}

void DeviceTransformer::feed_forward_weight_grad(const DeviceLayerCall& call) const {
  const DeviceTensor gradient = branch_gradient(call, kFeedForwardBranch, output_gradient_);
  if (experts_) {
    const std::byte* const input = all_rows(call, norm2_output_, norm_gradient_);
    const std::byte* const all = layer_.shared_ffn > 0 ? all_rows(call, gradient, gathered_) : nullptr;
    return experts_->weight_grad(call, all, input);
  }
  row_parallel_gradient(call, at_.down, at_.down_bias, gradient, activated_, layer_.ffn);
  column_parallel_gradient(call, at_.up, at_.up_bias, up_, norm2_output_, up_width_);
}

void DeviceTransformer::forward(const DeviceLayerCall& call, void* output) const {
  DeviceKernels& kernels = call.kernels;
  const std::int64_t h = layer_.hidden;
  const auto epsilon = static_cast<float>(layer_.norm_epsilon);
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };

  kernels.norm_forward(at(norm1_output_), nullptr, at(input_), nullptr, norm_in(call, norm1_), {own_, h}, epsilon);
  multiply(call, qkv_, all_rows(call, norm1_output_, branch_), at_.qkv, at_.qkv_bias, {rows_, qkv_width_, h});
  if (layer_.rotary_size > 0) kernels.rotary(at(qkv_), call.constants, rotary_, RotaryDirection::kForward);
  attend_->forward(call, attention_of(call), at(attention_output_), floats_of(call, log_sum_exp_), at(qkv_));
  multiply(call, branch_, at(attention_output_), at_.output, is_alone() ? at_.output_bias : -1, {rows_, h, query_});
  std::byte* branch = sum_rows(call, branch_);
  if (!is_alone()) add_bias(call, branch, at_.output_bias, own_, h);
  if (layer_.dropout > 0 || layer_.parallel_residual) {
    if (layer_.dropout > 0) drop_branch(call, kAttentionBranch, at(residual_), branch, input_);
    if (layer_.dropout == 0) kernels.residual_add(at(residual_), at(input_), branch, nullptr, own_, h);
    kernels.norm_forward(at(norm2_output_), nullptr, at(mlp_input_), nullptr, norm_in(call, norm2_), {own_, h},
                         epsilon);
  } else {
    kernels.norm_forward(at(norm2_output_), at(residual_), branch, at(input_), norm_in(call, norm2_), {own_, h},
                         epsilon);
  }
  feed_forward(call);
  branch = sum_rows(call, branch_);
  if (layer_.dropout > 0) {
    if (!is_alone() || experts_) add_bias(call, branch, at_.down_bias, own_, h);
    drop_branch(call, kFeedForwardBranch, output, branch, residual_);
  } else {
    kernels.residual_add(output, at(residual_), branch, call.vector(at_.down_bias), own_, h);
  }
}

void DeviceTransformer::rebuild_cheap(const DeviceLayerCall& call) const {
  const auto epsilon = static_cast<float>(layer_.norm_epsilon);
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  const NormSize size{own_, layer_.hidden};
  call.kernels.norm_forward(at(norm1_output_), nullptr, at(input_), nullptr, norm_in(call, norm1_), size, epsilon);
  call.kernels.norm_forward(at(norm2_output_), nullptr, at(mlp_input_), nullptr, norm_in(call, norm2_), size, epsilon);
  if (experts_) return experts_->activate(call);
  call.kernels.activation_forward(layer_, at(activated_), at(up_), rows_);
}

void DeviceTransformer::input_grad(const DeviceLayerCall& call, void* input_gradient) const {
  DeviceKernels& kernels = call.kernels;
  const std::int64_t h = layer_.hidden;
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  const auto norm_backward = [&](const DeviceLayerNorm& norm, void* dx, const std::byte* dy, DeviceTensor past,
                                 DeviceTensor x) {
    call.tensor.add_replicated(call.gradients + norm.gain, floats_of(call, replicated_), norm.elements(h),
                               [&](float* gain) {
                                 kernels.norm_backward(dx, gain, norm.bias < 0 ? nullptr : gain + h, dy, at(past),
                                                       at(x), norm_in(call, norm), {own_, h});
                               });
  };

  feed_forward_input_grad(call);
  norm_backward(norm2_, at(stream_gradient_), sum_rows(call, norm_gradient_), output_gradient_, mlp_input_);

  kernels.linear_input_grad(
      at(attention_gradient_),
      all_rows(call, branch_gradient(call, kAttentionBranch, attention_branch_gradient_), norm_gradient_),
      weight(call, at_.output), {rows_, query_, h});
  attend_->backward(call, attention_of(call),
                    {.dqkv = at(qkv_gradient_),
                     .products = floats_of(call, products_),
                     .doutput = at(attention_gradient_),
                     .qkv = at(qkv_),
                     .output = at(attention_output_),
                     .log_sum_exp = floats_of(call, log_sum_exp_)});
  kernels.copy(at(qkv_), at(qkv_gradient_), rows_ * qkv_width_ * element_bytes_);
  if (layer_.rotary_size > 0) kernels.rotary(at(qkv_), call.constants, rotary_, RotaryDirection::kBackward);
  kernels.linear_input_grad(at(norm_gradient_), at(qkv_), weight(call, at_.qkv), {rows_, h, qkv_width_});
  sum_shared_heads(call);
  norm_backward(norm1_, input_gradient, sum_rows(call, norm_gradient_), stream_gradient_, input_);
}

void DeviceTransformer::weight_grad(const DeviceLayerCall& call) const {
  feed_forward_weight_grad(call);
  row_parallel_gradient(call, at_.output, at_.output_bias,
                        branch_gradient(call, kAttentionBranch, attention_branch_gradient_), attention_output_, query_);
  column_parallel_gradient(call, at_.qkv, at_.qkv_bias, qkv_, norm1_output_, qkv_width_);
}

}  // namespace

std::unique_ptr<DeviceLayer> make_device_transformer(const TransformerLayer& layer, const LayerWork& work,
                                                     std::int64_t element_bytes, const DeviceTensorShare& share) {
  return std::make_unique<DeviceTransformer>(layer, work, element_bytes, share);
}

}}  // namespace plumb::executor
