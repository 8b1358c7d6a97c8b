// Token and position embedding on a device. Symbols are those of kernels/layer.h. A tensor rank has V/t rows of
// the table and looks up the tokens among them (others are negative). The first rank adds the positions, whose table
// every rank has.

#include "executor/cpu/layers/layer.h"
#include "executor/device/layers/device_layer.h"

namespace plumb { inline namespace executor {
namespace {

class DeviceEmbedding : public DeviceLayer {
 public:
  DeviceEmbedding(const EmbeddingLayer& layer, const LayerWork& work, std::int64_t element_bytes,
                  const DeviceTensorShare& share)
      : layer_(layer),
        work_(work),
        tokens_(context_tokens(share.slice, share.context)),
        element_bytes_(element_bytes),
        tokens_at_(parameter_offset(layer, "tokens.weight")),
        positions_at_(parameter_offset(layer, "positions.weight")),
        output_gradient_(
            place_tensor(DevicePlace::kLate, bytes_.late, own_rows_of(work) * layer.hidden * element_bytes)) {
    // All ranks take this memory, so that their arenas are alike.
    if (positions_at_ >= 0 && (share.context.ranks > 1 || share.is_sliced())) {
      const std::int64_t table = work.sequence * layer.hidden;
      own_positions_ = place_tensor(DevicePlace::kWorkspace, bytes_.forward_workspace, table * element_bytes);
      own_position_sums_ =
          place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, table * std::int64_t{sizeof(float)});
    }
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
    call.kernels.embedding_forward(all, call.tokens, call.weights + tokens_at_ * element_bytes_,
                                   call.tensor.rank() > 0 ? nullptr : positions(call), layer_, work_);
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
    float* const sums = positions_at_ < 0 ? nullptr : call.gradients + positions_at_;
    if (!has_own_positions())
      return call.kernels.embedding_backward(call.gradients + tokens_at_, sums, gradient, call.tokens, layer_, work_);
    float* const own = floats_of(call, own_position_sums_);
    call.kernels.fill_zero(own, work_.sequence * layer_.hidden);
    call.kernels.embedding_backward(call.gradients + tokens_at_, own, gradient, call.tokens, layer_, work_);
    for_each_run([&](std::int64_t of_own, std::int64_t whole, std::int64_t count) {
      call.kernels.add_gradients(sums + whole, sums + whole, own + of_own, count);
    });
  }

 private:
  /// True if the rank has some tokens of each sequence, whose positions differ from their rows.
  bool has_own_positions() const { return positions_at_ >= 0 && (tokens_.second.count > 0 || tokens_.first.first > 0); }

  /// Calls visit(element of the own tokens' rows, element of the position table, count).
  template <class Visit>
  void for_each_run(Visit visit) const {
    std::int64_t own = 0;
    for (const TokenRange& run : {tokens_.first, tokens_.second}) {
      if (run.count > 0) visit(own, run.first * layer_.hidden, run.count * layer_.hidden);
      own += run.count * layer_.hidden;
    }
  }

  /// Returns the rows of the position table from the position of the first tokens here on, or null if there is no
  /// table.
  const std::byte* positions(const DeviceLayerCall& call) const {
    if (positions_at_ < 0) return nullptr;
    const std::byte* const table = call.weights + positions_at_ * element_bytes_;
    if (!has_own_positions()) return table;
    std::byte* const own = address_of(call, own_positions_);
    for_each_run([&](std::int64_t to, std::int64_t from, std::int64_t count) {
      call.kernels.copy(own + to * element_bytes_, table + from * element_bytes_, count * element_bytes_);
    });
    return own;
  }

  EmbeddingLayer layer_;
  LayerWork work_;
  ContextTokens tokens_;  // tokens of each sequence on this rank
  std::int64_t element_bytes_;
  std::int64_t tokens_at_, positions_at_;
  DeviceLayerBytes bytes_;
  DeviceTensor output_gradient_;    // [R, h]: T rows, or the block that a rank has between products
  DeviceTensor sum_, gathered_;     // [T, h], where rows are divided
  DeviceTensor own_positions_;      // [S, h], if the rank has some tokens of each sequence
  DeviceTensor own_position_sums_;  // [S, h], fp32, in the same case
};

}  // namespace

std::unique_ptr<DeviceLayer> make_device_embedding(const EmbeddingLayer& layer, const LayerWork& work,
                                                   std::int64_t element_bytes, const DeviceTensorShare& share) {
  return std::make_unique<DeviceEmbedding>(layer, work, element_bytes, share);
}

}}  // namespace plumb::executor
