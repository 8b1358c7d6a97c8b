// ZeRO 2 and 3 layer by layer (executor/cpu/parameters/layer_moves.h): a pass gathers a layer's weights beside the compute of the
// one before, and reduces a layer's gradients when they are complete. Two layers' weights and one's gradients stand at
// once, in front of the pass's workspace. What copies exchange is on the reduce stream, in the order of the list of
// executor/nccl; a pass may end before its last reduction has, which REDUCE_GRAD then stands behind.

#include <algorithm>

#include "executor/device/stage/device_stage.h"

namespace plumb { inline namespace executor {

/// Weights of all blocks, then gradients.
void DeviceStage::place_moved() {
  for (const ParameterBlock& block : blocks_) moved_weight_bytes_ += block.moved_weight_bytes();
  std::int64_t weights = 0;
  for (ParameterBlock& block : blocks_) {
    block.place_moved(weights, moved_weight_bytes_ + moved_gradient_bytes_);
    weights += block.moved_weight_bytes();
    moved_gradient_bytes_ += block.moved_gradient_bytes();
  }
}

std::int64_t DeviceStage::moved_bytes(bool is_backward) const {
  return moved_weight_bytes_ + (is_backward ? moved_gradient_bytes_ : 0);
}

bool DeviceStage::has_parameters(std::size_t layer) const {
  return std::ranges::any_of(blocks_, [&](const ParameterBlock& block) { return block.range_of(layer).count > 0; });
}

void DeviceStage::begin_gather(const DevicePass& pass, std::size_t layer) const {
  CallRecorder& recorder = *pass.recorder;
  recorder.go_aside(DeviceStream::kReduce);
  for (const ParameterBlock& block : blocks_) block.gather_layer(recorder, pass.moved, layer);
  if (options_.half) {
    recorder.open_piece();
    for (const ParameterBlock& block : blocks_) block.widen_layer(recorder, pass.moved, layer);
  }
  pass.moves->ahead = layer;
  pass.moves->gather = recorder.come_back();
}

void DeviceStage::fetch(const DevicePass& pass, std::size_t layer, std::optional<std::size_t> next) const {
  if (!common().shares().gathers_layers() || !has_parameters(layer)) return;
  if (pass.moves->ahead != layer) begin_gather(pass, layer);
  const std::int32_t gather = pass.moves->gather;
  pass.moves->ahead.reset();
  const bool looks_ahead = layout_of(pass).rebuild.what == Rebuild::kNothing;
  if (next && looks_ahead && has_parameters(*next)) begin_gather(pass, *next);
  pass.recorder->await(gather);
}

void DeviceStage::fetch_forward(const DevicePass& pass, std::size_t layer) const {
  fetch(pass, layer, layer + 1 < options_.layers.size() ? std::optional(layer + 1) : std::nullopt);
}

void DeviceStage::fetch_backward(const DevicePass& pass, std::size_t layer) const {
  fetch(pass, layer, layer > 0 ? std::optional(layer - 1) : std::nullopt);
}

/// Zeros, when the gradients that had the place are reduced.
void DeviceStage::open_layer(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const {
  if (!common().shares().reduces_layers() || !has_parameters(layer)) return;
  if (pass.moves->reduction >= 0) pass.recorder->await(pass.moves->reduction);
  for (const ParameterBlock& block : blocks_) block.open_layer(kernels, pass.moved, layer);
}

/// What I has of gradients, all of vectors, waits for W.
void DeviceStage::leave_vectors(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const {
  for (const ParameterBlock& block : blocks_) block.leave_vectors(kernels, pass.moved, layer);
}

void DeviceStage::take_vectors(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const {
  for (const ParameterBlock& block : blocks_) block.take_vectors(kernels, pass.moved, layer);
}

void DeviceStage::reduce_layer(const DevicePass& pass, std::size_t layer) const {
  if (!common().shares().reduces_layers() || !has_parameters(layer)) return;
  CallRecorder& recorder = *pass.recorder;
  recorder.go_aside(DeviceStream::kReduce);
  for (const ParameterBlock& block : blocks_) block.exchange_gradients(recorder, pass.moved, layer);
  recorder.open_piece();
  for (const ParameterBlock& block : blocks_) block.add_share(recorder, pass.moved, layer);
  pass.moves->reduction = recorder.come_back();
}

}}  // namespace plumb::executor
