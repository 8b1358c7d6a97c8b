// Final norm, projection and cross-entropy on a device. Symbols are those of kernels/layer.h.

#include <algorithm>

#include "executor/device/layers/device_layer.h"
#include "executor/device/layers/device_norm.h"

namespace plumb { inline namespace executor {
namespace {

class DeviceHead : public DeviceLayer {
 public:
  DeviceHead(const HeadLayer& layer, const LayerWork& work, std::int64_t element_bytes, const DeviceTensorShare& share)
      : layer_(layer),
        ranks_(share.ranks),
        rows_(tokens_of(work)),
        own_(own_rows_of(work)),
        element_bytes_(element_bytes),
        projection_(parameter_offset(layer, "projection.weight")),
        projection_bytes_(projection_ * element_bytes),
        norm_(place_norm(layer, "norm", layer.norm, own_, bytes_)) {
    const std::int64_t hidden = own_ * layer.hidden * element_bytes, all = rows_ * layer.hidden * element_bytes;
    input_ = place_tensor(DevicePlace::kEarly, bytes_.early, hidden);
    norm_output_ = place_tensor(DevicePlace::kCheap, bytes_.cheap, hidden);
    logits_ = place_tensor(DevicePlace::kLate, bytes_.late, rows_ * layer.vocab * element_bytes);
    const std::int64_t first = share.rank * layer.vocab;
    part_ = {.rows = rows_,
             .columns = layer.vocab,
             .first = first,
             .valid = std::clamp<std::int64_t>(share.whole_vocabulary - first, 0, layer.vocab)};
    if (ranks_ > 1)
      parts_ = place_tensor(DevicePlace::kWorkspace, bytes_.forward_workspace,
                            3 * ranks_ * rows_ * std::int64_t{sizeof(float)});
    norm_gradient_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, all);
    if (!work.sequence_parallel) return;
    gathered_ = place_tensor(DevicePlace::kWorkspace, bytes_.forward_workspace, all);
    replicated_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace,
                               2 * layer.hidden * std::int64_t{sizeof(float)});
  }

  DeviceLayerBytes bytes() const override { return bytes_; }
  DeviceTensor input() const override { return input_; }
  DeviceTensor output_gradient() const override { return {}; }

  void forward(const DeviceLayerCall& call, void*) const override {
    const std::int64_t h = layer_.hidden;
    rebuild_cheap(call);
    call.kernels.linear_forward(address_of(call, logits_), all_norm_output(call, gathered_),
                                call.weights + projection_bytes_, {rows_, layer_.vocab, h});
    if (ranks_ > 1) return take_loss(call);
    call.kernels.cross_entropy(call.losses, address_of(call, logits_), call.targets, part_, call.gradient_scale,
                               call.loss_scale);
  }

  void rebuild_cheap(const DeviceLayerCall& call) const override {
    call.kernels.norm_forward(address_of(call, norm_output_), nullptr, address_of(call, input_), nullptr,
                              norm_in(call, norm_), {own_, layer_.hidden}, static_cast<float>(layer_.norm_epsilon));
  }

  void input_grad(const DeviceLayerCall& call, void* input_gradient) const override {
    const std::int64_t h = layer_.hidden;
    call.kernels.linear_input_grad(address_of(call, norm_gradient_), address_of(call, logits_),
                                   call.weights + projection_bytes_, {rows_, h, layer_.vocab});
    const std::byte* dy = call.tensor.sum_rows(address_of(call, norm_gradient_), rows_ * h, element_bytes_);
    call.tensor.add_replicated(
        call.gradients + norm_.gain, floats_of(call, replicated_), norm_.elements(h), [&](float* gain) {
          call.kernels.norm_backward(input_gradient, gain, norm_.bias < 0 ? nullptr : gain + h, dy, nullptr,
                                     address_of(call, input_), norm_in(call, norm_), {own_, h});
        });
  }

  void weight_grad(const DeviceLayerCall& call) const override {
    call.kernels.linear_weight_grad(call.gradients + projection_, address_of(call, logits_),
                                    all_norm_output(call, norm_gradient_), {layer_.vocab, layer_.hidden, rows_});
  }

 private:
  const std::byte* all_norm_output(const DeviceLayerCall& call, DeviceTensor gathered) const {
    return call.tensor.all_rows(address_of(call, norm_output_), address_of(call, gathered), rows_ * layer_.hidden,
                                element_bytes_);
  }

  /// Computes the loss: each rank sums up its own columns of a row, and the ranks exchange these parts.
  void take_loss(const DeviceLayerCall& call) const {
    float* parts = floats_of(call, parts_);
    call.kernels.cross_entropy_parts(parts + call.tensor.rank() * 3 * rows_, address_of(call, logits_), call.targets,
                                     part_);
    call.tensor.gather(parts, ranks_ * 3 * rows_);
    call.kernels.cross_entropy_from_parts(call.losses, address_of(call, logits_), parts, ranks_, call.targets, part_,
                                          call.gradient_scale, call.loss_scale);
  }

  HeadLayer layer_;  // this rank's share
  int ranks_;        // number of ranks that share the vocabulary
  VocabPart part_;
  DeviceTensor parts_;  // [ranks, 3, T], fp32
  std::int64_t rows_;   // T
  std::int64_t own_;    // R rows: T, or the block that a rank has between products
  std::int64_t element_bytes_;
  std::int64_t projection_, projection_bytes_;
  DeviceLayerBytes bytes_;
  DeviceLayerNorm norm_;
  DeviceTensor input_;          // [R, h]
  DeviceTensor norm_output_;    // [R, h]
  DeviceTensor logits_;         // [T, V]; from the forward on their gradient
  DeviceTensor norm_gradient_;  // [T, h]
  DeviceTensor gathered_;       // [T, h], where rows are divided
  DeviceTensor replicated_;     // [2h], fp32, where rows are divided
};

}  // namespace

std::unique_ptr<DeviceLayer> make_device_head(const HeadLayer& layer, const LayerWork& work, std::int64_t element_bytes,
                                              const DeviceTensorShare& share) {
  return std::make_unique<DeviceHead>(layer, work, element_bytes, share);
}

}}  // namespace plumb::executor
