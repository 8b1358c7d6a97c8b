#include "executor/layers/device/device_layer.h"

#include <algorithm>
#include <cassert>
#include <variant>

#include "executor/layers/device/embedding_step.h"
#include "executor/layers/device/head_exchange.h"
#include "executor/layers/device/kernel_step.h"
#include "executor/layers/device/loss_step.h"
#include "executor/layers/device/mamba2_step.h"
#include "executor/layers/device/tensor_exchange.h"
#include "executor/layers/exchange_part.h"
#include "kernels/cpu/images/image_sizes.h"
#include "kernels/simt/attention/attention.h"
#include "kernels/simt/experts/router.h"
#include "kernels/simt/state_spaces/causal_convolution.h"

namespace plumb { inline namespace executor {

bool has_device_kernels(const Layer& layer) {
  if (!is_on_devices(layer)) return false;
  if (const auto* mixer = mixer_of<Mamba2Mixer>(layer); mixer != nullptr && mixer->taps > simt::kMostTaps) return false;
  if (const auto* block = std::get_if<TransformerLayer>(&layer))
    return block->head_size <= simt::kLargestHead && block->value_size <= simt::kLargestHead &&
           std::max(block->experts_per_token, block->groups_per_token) <= simt::kMostPicks;
  return true;
}

DeviceLayer::DeviceLayer(const Layer& layer, const LayerWork& own, std::int64_t element_bytes, const DeviceSeat& seat)
    : program_(layer, own, element_bytes, seat), bytes_{program_.bytes()} {
  assert(has_device_kernels(layer));
  if (const auto* block = std::get_if<TransformerLayer>(&layer); block != nullptr) {
    if (block->heads > 0) attention_.emplace(program_, bytes_);
    if (block->experts > 0) {
      experts_.emplace(program_, bytes_);
      expert_exchange_.emplace(program_);
    }
  }
  if (std::holds_alternative<ConvolutionLayer>(layer)) add_convolution();
}

/// The patches lie behind the tensors of a pass.
void DeviceLayer::add_convolution() {
  convolution_.emplace(convolution_size(program_.plain().steps.front().call()->shape), program_.element_bytes());
  patches_at_ = std::max(bytes_.forward_workspace, bytes_.backward_workspace);
  bytes_.forward_workspace = bytes_.backward_workspace = patches_at_ + convolution_->workspace_bytes();
}

/// The table of a block's rotary embedding for the own tokens.
std::vector<float> DeviceLayer::constants() const {
  const auto* block = std::get_if<TransformerLayer>(&program_.layer());
  if (block == nullptr || block->heads == 0 || block->rotary_size == 0) return {};
  const DeviceSeat& seat = program_.seat();
  const std::vector<float> whole = rotary_table(seat.sequence, block->rotary_size, block->rope_theta);
  const ContextTokens tokens = context_tokens(seat.slice, seat.context);
  std::vector<float> own;
  for (const TokenRange& run : {tokens.first, tokens.second})
    own.insert(own.end(), whole.begin() + run.first * block->rotary_size,
               whole.begin() + (run.first + run.count) * block->rotary_size);
  return own;
}

void DeviceLayer::forward(const DeviceLayerCall& call, void* output) const {
  for (const LayerStep& step : program_.steps(Pass::kForward, call.rebuilds_cheap))
    enqueue({.program = program_, .step = step, .call = call, .output = output});
}

void DeviceLayer::rebuild_cheap(const DeviceLayerCall& call) const {
  for (const LayerStep& step : steps_of(program_.plain(), Pass::kForward))
    if (step.cheap) enqueue({.program = program_, .step = step, .call = call});
}

void DeviceLayer::input_grad(const DeviceLayerCall& call, void* input_gradient) const {
  for (const LayerStep& step : program_.steps(Pass::kInputGrad, call.rebuilds_cheap)) {
    const bool makes_it =
        !step.writes.empty() && program_.is_stored_at(step.writes[0], program_.plain().input_gradient);
    if (makes_it && input_gradient == nullptr) continue;  // the layer before has nothing to learn
    enqueue({.program = program_, .step = step, .call = call, .input_gradient = input_gradient});
  }
}

void DeviceLayer::weight_grad(const DeviceLayerCall& call) const {
  for (const LayerStep& step : program_.steps(Pass::kWeightGrad, call.rebuilds_cheap))
    enqueue({.program = program_, .step = step, .call = call});
}

void DeviceLayer::enqueue(const StepCall& of) const {
  if (of.step.first_rank_only && of.call.tensor.rank() > 0) return;
  if (of.step.exchange() != nullptr) return enqueue_exchange(of);
  const KernelKind kind = of.step.call()->kind;
  if (is_of_experts(of)) return experts_->enqueue(of);
  if (is_of_mamba2(kind)) return enqueue_mamba2(of);
  switch (kind) {
    case KernelKind::kAttentionForward:
    case KernelKind::kAttentionBackward:
    case KernelKind::kLatentAttentionForward:
    case KernelKind::kLatentAttentionBackward:
      return attention_->enqueue(of);
    case KernelKind::kEmbeddingForward:
    case KernelKind::kEmbeddingBackward:
      return enqueue_embedding(of);
    case KernelKind::kCrossEntropy:
    case KernelKind::kSquaredError:
      return enqueue_loss(of);
    case KernelKind::kConvolutionForward:
    case KernelKind::kConvolutionInputGrad:
    case KernelKind::kConvolutionWeightGrad:
      return convolve(of);
    default:
      return enqueue_kernel(of);
  }
}

void DeviceLayer::enqueue_exchange(const StepCall& of) const {
  switch (part_of(*of.step.exchange())) {
    case ExchangePart::kTensorGroup:
      return enqueue_tensor_exchange(of);
    case ExchangePart::kExpertGroup:
      return expert_exchange_->enqueue(of);
    case ExchangePart::kHeads:
      return exchange_heads(of);
    case ExchangePart::kPicks:
      return experts_->share_picks(of);
    case ExchangePart::kAttention:
      return;
  }
}

void DeviceLayer::convolve(const StepCall& of) const {
  std::byte* const patches = of.call.workspace + patches_at_;
  if (of.step.is(KernelKind::kConvolutionWeightGrad))
    return convolution_->weight_grad(of.kernels(), of.gradient(0), of.read(0), of.read(1), patches);
  if (of.is_forward())
    convolution_->forward(of.kernels(), of.written(0), of.read(0), of.weight(0), patches);
  else
    convolution_->input_grad(of.kernels(), of.written(0), of.read(0), of.weight(0), patches);
}

}}  // namespace plumb::executor
