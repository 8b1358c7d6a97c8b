#pragma once
// One layer on a device. It interprets the layer's program: each step of a pass enqueues its kernel or exchange, over
// memory that was planned before. A layer says how many bytes it needs of a micro-batch's two buffers (its input
// gradient frees one, and the other waits for its weight gradient) and of workspace; the call says where they lie.

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/layers/device/attention_step.h"
#include "executor/layers/device/convolution_products.h"
#include "executor/layers/device/expert_exchange.h"
#include "executor/layers/device/expert_steps.h"
#include "executor/layers/device/placed_program.h"

namespace plumb { inline namespace executor {

/// True if a device runs the layer. README.md beside this file says what it does not run.
bool has_device_kernels(const Layer& layer);

class DeviceLayer {
 public:
  /// `layer` is whole, and `own` has this rank's tokens. Asserts has_device_kernels().
  DeviceLayer(const Layer& layer, const LayerWork& own, std::int64_t element_bytes, const DeviceSeat& seat = {});

  const DeviceLayerBytes& bytes() const { return bytes_; }

  /// Returns numbers that the layer reads and that never change.
  std::vector<float> constants() const;

  /// Return where the layer takes its input and the gradient of its output [T, h]; MemoryPart::kNone for the input of a
  /// layer that begins the model, and for the gradient of one that ends it.
  TensorPlace input() const { return program_.place_of(program_.plain().input); }
  TensorPlace output_gradient() const { return program_.place_of(program_.plain().output_gradient); }

  /// output: [T, h]; null for a layer that ends the model.
  void forward(const DeviceLayerCall& call, void* output) const;

  /// Makes what lies in MemoryPart::kCheap again from the other kept tensors: outputs of norms and activations, with
  /// the same bits. It comes before input_grad.
  void rebuild_cheap(const DeviceLayerCall& call) const;

  /// input_gradient: [T, h]; null for a layer that begins the model. It adds the gradients of norms to the layer's.
  void input_grad(const DeviceLayerCall& call, void* input_gradient) const;

  /// Adds the other gradients. It comes after input_grad.
  void weight_grad(const DeviceLayerCall& call) const;

 private:
  void add_convolution();
  void enqueue(const StepCall& of) const;
  void enqueue_exchange(const StepCall& of) const;
  void convolve(const StepCall& of) const;

  PlacedProgram program_;
  DeviceLayerBytes bytes_;
  std::optional<AttentionStep> attention_;
  std::optional<ExpertSteps> experts_;
  std::optional<DeviceExpertExchange> expert_exchange_;
  std::optional<ConvolutionProducts> convolution_;
  std::int64_t patches_at_ = 0;  // bytes in the workspace before a convolution's patches
};

}}  // namespace plumb::executor
