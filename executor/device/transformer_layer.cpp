// A decoder block on a device. Symbols as in kernels/layer.h: T tokens, h hidden, q = a*d, w = (a+2k)*d, f
// feed-forward, u = 2f (gated) or f. A gradient takes the storage of a kept tensor that is not needed any more:
// `residual`, `up` and `qkv` hold their own gradients behind the input gradient.

#include <algorithm>
#include <optional>
#include <string>

#include "executor/cpu/block_attention.h"
#include "executor/device/device_experts.h"
#include "executor/device/device_layer.h"
#include "executor/device/device_norm.h"

namespace plumb {
namespace {

class DeviceTransformer : public DeviceLayer {
 public:
  DeviceTransformer(const TransformerLayer& layer, const LayerWork& work, std::int64_t element_bytes)
      : layer_(layer),
        work_(work),
        rows_(tokens_of(work)),
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
        norm1_(place_norm(layer, "norm1", layer.norm, rows_, bytes_)),
        norm2_(place_norm(layer, "norm2", layer.norm, rows_, bytes_)) {
    const std::int64_t row = rows_ * element_bytes, statistics = rows_ * layer.heads * std::int64_t{sizeof(float)};
    const auto early = [&](std::int64_t bytes) { return place_tensor(DevicePlace::kEarly, bytes_.early, bytes); };
    const auto late = [&](std::int64_t bytes) { return place_tensor(DevicePlace::kLate, bytes_.late, bytes); };
    const auto cheap = [&](std::int64_t bytes) { return place_tensor(DevicePlace::kCheap, bytes_.cheap, bytes); };
    input_ = early(row * layer.hidden);
    log_sum_exp_ = early(statistics);
    norm1_output_ = cheap(row * layer.hidden);
    qkv_ = late(row * qkv_width_);
    attention_output_ = late(row * query_);
    residual_ = late(row * layer.hidden);
    norm2_output_ = cheap(row * layer.hidden);
    if (layer.experts == 0) {
      up_ = late(row * up_width_);
      activated_ = cheap(row * layer.ffn);
    }
    output_gradient_ = late(row * layer.hidden);

    branch_ = place_tensor(DevicePlace::kWorkspace, bytes_.forward_workspace, row * layer.hidden);
    norm_gradient_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, row * layer.hidden);
    if (layer.dropout > 0)
      dropped_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, row * layer.hidden);
    // The MLP's part of the backward, or the experts', is over when attention's begins.
    std::int64_t of_attention = bytes_.backward_workspace;
    if (layer.experts > 0)
      experts_.emplace(layer, work, element_bytes, bytes_);
    else
      activated_gradient_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, row * layer.ffn);
    attention_gradient_ = place_tensor(DevicePlace::kWorkspace, of_attention, row * query_);
    qkv_gradient_ = place_tensor(DevicePlace::kWorkspace, of_attention, row * qkv_width_);
    products_ = place_tensor(DevicePlace::kWorkspace, of_attention, statistics);
    bytes_.backward_workspace = std::max(bytes_.backward_workspace, of_attention);
  }

  DeviceLayerBytes bytes() const override { return bytes_; }
  std::vector<float> constants() const override {
    if (layer_.rotary_size == 0) return {};
    return rotary_table(attention_.sequence, layer_.rotary_size, layer_.rope_theta);
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
  void add_bias(const DeviceLayerCall& call, void* y, std::int64_t bias, std::int64_t columns) const {
    if (bias >= 0) call.kernels.bias_forward(y, call.vector(bias), rows_, columns);
  }
  /// attention_, with the mask of this micro-batch's probabilities.
  AttentionSize attention_of(const DeviceLayerCall& call) const {
    AttentionSize size = attention_;
    size.dropout = {
        .probability = layer_.dropout, .key = dropout_key(call, kProbabilities), .first_sample = call.first_sample};
    return size;
  }
  /// to = residual + a branch's dropout of its result.
  void drop_branch(const DeviceLayerCall& call, BlockDropout branch, void* to, DeviceTensor residual) const {
    drop_rows(call, branch, to, address_of(call, branch_), address_of(call, residual), work_, layer_.hidden,
              layer_.dropout);
  }
  /// The gradient of a branch before its dropout.
  DeviceTensor branch_gradient(const DeviceLayerCall& call, BlockDropout branch, DeviceTensor gradient) const {
    if (layer_.dropout == 0) return gradient;
    drop_rows(call, branch, address_of(call, dropped_), address_of(call, gradient), nullptr, work_, layer_.hidden,
              layer_.dropout);
    return dropped_;
  }
  // From norm 2's output to what joins the residual, before a tensor group's sum and the last bias; and back.
  void feed_forward(const DeviceLayerCall& call) const;
  void feed_forward_input_grad(const DeviceLayerCall& call) const;
  void feed_forward_weight_grad(const DeviceLayerCall& call) const;

  void linear_gradient(const DeviceLayerCall& call, std::int64_t at, std::int64_t bias, DeviceTensor dy, DeviceTensor x,
                       std::int64_t out, std::int64_t in) const {
    call.kernels.linear_weight_grad(call.gradients + at, address_of(call, dy), address_of(call, x), {out, in, rows_});
    if (bias >= 0) call.kernels.bias_backward(call.gradients + bias, address_of(call, dy), rows_, out);
  }

  TransformerLayer layer_;
  LayerWork work_;
  std::int64_t rows_;  // T
  std::int64_t query_, qkv_width_, up_width_;
  std::int64_t element_bytes_;
  AttentionSize attention_;
  RotarySize rotary_;
  Places at_;
  DeviceLayerBytes bytes_;
  DeviceLayerNorm norm1_, norm2_;
  std::optional<DeviceExperts> experts_;  // in the MLP's place
  DeviceTensor input_;                    // [T, h]
  DeviceTensor log_sum_exp_;              // [b, a, s], fp32
  DeviceTensor norm1_output_;             // [T, h]
  DeviceTensor qkv_;                      // [T, w]
  DeviceTensor attention_output_;         // [T, q]
  DeviceTensor residual_;                 // [T, h]
  DeviceTensor norm2_output_;             // [T, h]
  DeviceTensor up_;                       // [T, u]
  DeviceTensor activated_;                // [T, f]
  DeviceTensor output_gradient_;          // [T, h]
  DeviceTensor branch_;                   // [T, h]
  DeviceTensor norm_gradient_;            // [T, h]
  DeviceTensor dropped_;                  // [T, h], of a branch, where there is dropout
  DeviceTensor activated_gradient_;       // [T, f]
  DeviceTensor attention_gradient_;       // [T, q]
  DeviceTensor qkv_gradient_;             // [T, w]
  DeviceTensor products_;                 // [b, a, s], fp32
};

void DeviceTransformer::feed_forward(const DeviceLayerCall& call) const {
  DeviceKernels& kernels = call.kernels;
  const std::int64_t h = layer_.hidden;
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  if (experts_) return experts_->forward(call, at(branch_), at(norm2_output_));
  kernels.linear_forward(at(up_), at(norm2_output_), weight(call, at_.up), {rows_, up_width_, h});
  add_bias(call, at(up_), at_.up_bias, up_width_);
  kernels.activation_forward(layer_, at(activated_), at(up_), rows_);
  kernels.linear_forward(at(branch_), at(activated_), weight(call, at_.down), {rows_, h, layer_.ffn});
}

/// From the output's gradient to norm_gradient_.
void DeviceTransformer::feed_forward_input_grad(const DeviceLayerCall& call) const {
  DeviceKernels& kernels = call.kernels;
  const std::int64_t h = layer_.hidden;
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  const DeviceTensor gradient = branch_gradient(call, kFeedForwardBranch, output_gradient_);
  if (experts_) return experts_->input_grad(call, at(norm_gradient_), at(gradient));
  kernels.linear_input_grad(at(activated_gradient_), at(gradient), weight(call, at_.down), {rows_, layer_.ffn, h});
  kernels.activation_backward(layer_, at(up_), at(activated_gradient_), rows_);
  kernels.linear_input_grad(at(norm_gradient_), at(up_), weight(call, at_.up), {rows_, h, up_width_});
}

void DeviceTransformer::feed_forward_weight_grad(const DeviceLayerCall& call) const {
  const std::int64_t h = layer_.hidden;
  const DeviceTensor gradient = branch_gradient(call, kFeedForwardBranch, output_gradient_);
  if (experts_) return experts_->weight_grad(call, address_of(call, gradient), address_of(call, norm2_output_));
  linear_gradient(call, at_.down, at_.down_bias, gradient, activated_, h, layer_.ffn);
  linear_gradient(call, at_.up, at_.up_bias, up_, norm2_output_, up_width_, h);
}

void DeviceTransformer::forward(const DeviceLayerCall& call, void* output) const {
  DeviceKernels& kernels = call.kernels;
  const std::int64_t h = layer_.hidden;
  const auto epsilon = static_cast<float>(layer_.norm_epsilon);
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };

  kernels.norm_forward(at(norm1_output_), nullptr, at(input_), nullptr, norm_in(call, norm1_), {rows_, h}, epsilon);
  kernels.linear_forward(at(qkv_), at(norm1_output_), weight(call, at_.qkv), {rows_, qkv_width_, h});
  add_bias(call, at(qkv_), at_.qkv_bias, qkv_width_);
  if (layer_.rotary_size > 0) kernels.rotary(at(qkv_), call.constants, rotary_, RotaryDirection::kForward);
  kernels.attention_forward(at(attention_output_), floats_of(call, log_sum_exp_), at(qkv_), attention_of(call),
                            call.numbers);
  kernels.linear_forward(at(branch_), at(attention_output_), weight(call, at_.output), {rows_, h, query_});
  call.tensor.sum(at(branch_), rows_ * h);
  add_bias(call, at(branch_), at_.output_bias, h);
  if (layer_.dropout > 0) {
    drop_branch(call, kAttentionBranch, at(residual_), input_);
    kernels.norm_forward(at(norm2_output_), nullptr, at(residual_), nullptr, norm_in(call, norm2_), {rows_, h},
                         epsilon);
  } else {
    kernels.norm_forward(at(norm2_output_), at(residual_), at(branch_), at(input_), norm_in(call, norm2_), {rows_, h},
                         epsilon);
  }
  feed_forward(call);
  call.tensor.sum(at(branch_), rows_ * h);
  if (layer_.dropout > 0) {
    add_bias(call, at(branch_), at_.down_bias, h);
    drop_branch(call, kFeedForwardBranch, output, residual_);
  } else {
    kernels.residual_add(output, at(residual_), at(branch_), call.vector(at_.down_bias), rows_, h);
  }
}

void DeviceTransformer::rebuild_cheap(const DeviceLayerCall& call) const {
  const auto epsilon = static_cast<float>(layer_.norm_epsilon);
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  const NormSize size{rows_, layer_.hidden};
  call.kernels.norm_forward(at(norm1_output_), nullptr, at(input_), nullptr, norm_in(call, norm1_), size, epsilon);
  call.kernels.norm_forward(at(norm2_output_), nullptr, at(residual_), nullptr, norm_in(call, norm2_), size, epsilon);
  if (experts_) return experts_->activate(call);
  call.kernels.activation_forward(layer_, at(activated_), at(up_), rows_);
}

void DeviceTransformer::input_grad(const DeviceLayerCall& call, void* input_gradient) const {
  DeviceKernels& kernels = call.kernels;
  const std::int64_t h = layer_.hidden;
  const auto at = [&](DeviceTensor tensor) { return address_of(call, tensor); };
  const auto norm_backward = [&](const DeviceLayerNorm& norm, void* dx, DeviceTensor past, DeviceTensor x) {
    kernels.norm_backward(dx, call.gradients + norm.gain, at_offset(call.gradients, norm.bias), at(norm_gradient_),
                          at(past), at(x), norm_in(call, norm), {rows_, h});
  };

  feed_forward_input_grad(call);
  call.tensor.sum(at(norm_gradient_), rows_ * h);
  norm_backward(norm2_, at(residual_), output_gradient_, residual_);

  kernels.linear_input_grad(at(attention_gradient_), at(branch_gradient(call, kAttentionBranch, residual_)),
                            weight(call, at_.output), {rows_, query_, h});
  kernels.attention_backward(at(qkv_gradient_), floats_of(call, products_), at(attention_gradient_), at(qkv_),
                             at(attention_output_), floats_of(call, log_sum_exp_), attention_of(call), call.numbers);
  kernels.copy(at(qkv_), at(qkv_gradient_), rows_ * qkv_width_ * element_bytes_);
  if (layer_.rotary_size > 0) kernels.rotary(at(qkv_), call.constants, rotary_, RotaryDirection::kBackward);
  kernels.linear_input_grad(at(norm_gradient_), at(qkv_), weight(call, at_.qkv), {rows_, h, qkv_width_});
  call.tensor.sum(at(norm_gradient_), rows_ * h);
  norm_backward(norm1_, input_gradient, residual_, input_);
}

void DeviceTransformer::weight_grad(const DeviceLayerCall& call) const {
  const std::int64_t h = layer_.hidden;
  feed_forward_weight_grad(call);
  linear_gradient(call, at_.output, at_.output_bias, branch_gradient(call, kAttentionBranch, residual_),
                  attention_output_, h, query_);
  linear_gradient(call, at_.qkv, at_.qkv_bias, qkv_, norm1_output_, qkv_width_, h);
}

}  // namespace

std::unique_ptr<DeviceLayer> make_device_transformer(const TransformerLayer& layer, const LayerWork& work,
                                                     std::int64_t element_bytes) {
  return std::make_unique<DeviceTransformer>(layer, work, element_bytes);
}

}  // namespace plumb
