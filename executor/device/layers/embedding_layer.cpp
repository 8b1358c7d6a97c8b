// Token and position embedding on a device. Symbols as in kernels/layer.h. A tensor rank has V/t rows of the table and
// the tokens among them (others are negative); the first adds the positions, whose table every rank has.

#include "executor/cpu/layer.h"
#include "executor/device/layers/device_layer.h"

namespace plumb {
namespace {

class DeviceEmbedding : public DeviceLayer {
 public:
  DeviceEmbedding(const EmbeddingLayer& layer, const LayerWork& work, std::int64_t element_bytes)
      : layer_(layer),
        work_(work),
        element_bytes_(element_bytes),
        tokens_at_(parameter_offset(layer, "tokens.weight")),
        positions_at_(parameter_offset(layer, "positions.weight")),
        output_gradient_(
            place_tensor(DevicePlace::kLate, bytes_.late, own_rows_of(work) * layer.hidden * element_bytes)) {
    if (!work.sequence_parallel) return;
    const std::int64_t all = tokens_of(work) * layer.hidden * element_bytes;
    sum_ = place_tensor(DevicePlace::kWorkspace, bytes_.forward_workspace, all);
    gathered_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, all);
  }

  DeviceLayerBytes bytes() const override { return bytes_; }
  DeviceTensor input() const override { return {}; }
  DeviceTensor output_gradient() const override { return output_gradient_; }

  void forward(const DeviceLayerCall& call, void* output) const override {
    const std::int64_t elements = tokens_of(work_) * layer_.hidden;
    auto* const own = static_cast<std::byte*>(output);
    std::byte* const all = call.tensor.divides_rows ? address_of(call, sum_) : own;
    call.kernels.embedding_forward(
        all, call.tokens, call.weights + tokens_at_ * element_bytes_,
        positions_at_ < 0 || call.tensor.rank() > 0 ? nullptr : call.weights + positions_at_ * element_bytes_, layer_,
        work_);
    const std::byte* const sum = call.tensor.sum_rows(all, elements, element_bytes_);
    if (layer_.dropout > 0)
      drop_rows(call, 0, own, sum, nullptr, work_, layer_.hidden, layer_.dropout, element_bytes_);
    else if (sum != own)
      call.kernels.copy(own, sum, own_rows_of(work_) * layer_.hidden * element_bytes_);
  }

  void input_grad(const DeviceLayerCall&, void*) const override {}

  void weight_grad(const DeviceLayerCall& call) const override {
    std::byte* gradient = address_of(call, output_gradient_);
    if (layer_.dropout > 0)
      drop_rows(call, 0, gradient, gradient, nullptr, work_, layer_.hidden, layer_.dropout, element_bytes_);
    gradient =
        call.tensor.all_rows(gradient, address_of(call, gathered_), tokens_of(work_) * layer_.hidden, element_bytes_);
    call.kernels.embedding_backward(call.gradients + tokens_at_, at_offset(call.gradients, positions_at_), gradient,
                                    call.tokens, layer_, work_);
  }

 private:
  EmbeddingLayer layer_;
  LayerWork work_;
  std::int64_t element_bytes_;
  std::int64_t tokens_at_, positions_at_;
  DeviceLayerBytes bytes_;
  DeviceTensor output_gradient_;  // [R, h]: T rows, or the block that a rank has between products
  DeviceTensor sum_, gathered_;   // [T, h], where rows are divided
};

}  // namespace

std::unique_ptr<DeviceLayer> make_device_embedding(const EmbeddingLayer& layer, const LayerWork& work,
                                                   std::int64_t element_bytes) {
  return std::make_unique<DeviceEmbedding>(layer, work, element_bytes);
}

}  // namespace plumb
