#include "executor/device/layers/program_layer.h"

#include <cassert>
#include <optional>
#include <variant>

#include "executor/device/layers/convolution_products.h"
#include "kernels/cpu/images/image_sizes.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {
namespace {

/// The numbers of a layer that its kernels need besides their shapes.
struct LayerNumbers {
  bool exact_gelu = false;
  double dropout = 0;
};

LayerNumbers numbers_of(const Layer& layer) {
  if (const auto* linear = std::get_if<LinearLayer>(&layer)) return {linear->exact_gelu, linear->dropout};
  if (const auto* mlp = std::get_if<MlpLayer>(&layer)) return {.exact_gelu = mlp->exact_gelu};
  return {};
}

DevicePlace place_of(MemoryPart part) {
  switch (part) {
    case MemoryPart::kEarly:
      return DevicePlace::kEarly;
    case MemoryPart::kLate:
      return DevicePlace::kLate;
    case MemoryPart::kCheap:
      return DevicePlace::kCheap;
    case MemoryPart::kPassing:
      return DevicePlace::kPassing;
    case MemoryPart::kForwardWorkspace:
    case MemoryPart::kBackwardWorkspace:
      return DevicePlace::kWorkspace;
    case MemoryPart::kNone:
      break;
  }
  return DevicePlace::kNowhere;
}

class ProgramLayer : public DeviceLayer {
 public:
  ProgramLayer(const Layer& layer, const LayerWork& work, std::int64_t element_bytes)
      : program_(fused_program(layer, work, false)),
        first_in_storage_(first_in_storage(program_)),
        numbers_(numbers_of(layer)),
        dropped_{.count = work.microbatch, .tokens = work.sequence},
        element_bytes_(element_bytes) {
    std::int64_t elements = 0;
    for (const ParameterTensor& parameter : program_.parameters) {
      parameter_at_.push_back(elements);
      elements += element_count(parameter);
    }
    const LayerPlaces places = layer_places(program_, element_bytes);
    for (const TensorPlace& place : places.places) tensors_.push_back({place_of(place.part), place.offset});
    bytes_ = {.early = places.bytes.early,
              .late = places.bytes.late,
              .cheap = places.bytes.cheap,
              .passing = places.bytes.passing,
              .forward_workspace = places.bytes.forward_workspace,
              .backward_workspace = places.bytes.backward_workspace};
    if (const auto* convolution = std::get_if<ConvolutionLayer>(&layer); convolution != nullptr) add_convolution();
  }

  DeviceLayerBytes bytes() const override { return bytes_; }
  DeviceTensor input() const override { return handed(program_.input); }
  DeviceTensor output_gradient() const override { return handed(program_.output_gradient); }

  void forward(const DeviceLayerCall& call, void* output) const override {
    for (const LayerStep& step : steps_of(program_, Pass::kForward)) enqueue(step, {call, output, nullptr});
  }

  void input_grad(const DeviceLayerCall& call, void* input_gradient) const override {
    for (const LayerStep& step : steps_of(program_, Pass::kInputGrad)) {
      // The input layer takes no gradient.
      if (input_gradient == nullptr && !step.writes.empty() && is_stored_at(step.writes[0], program_.input_gradient))
        continue;
      enqueue(step, {call, nullptr, input_gradient});
    }
  }

  void weight_grad(const DeviceLayerCall& call) const override {
    for (const LayerStep& step : steps_of(program_, Pass::kWeightGrad)) enqueue(step, {call, nullptr, nullptr});
  }

 private:
  /// One pass of a micro-batch, and where its neighbours take what it makes.
  struct PassCall {
    const DeviceLayerCall& call;
    void* output;
    void* input_gradient;
  };

  void add_convolution() {
    convolution_.emplace(convolution_size(program_.steps.front().call()->shape), element_bytes_);
    // The patches lie behind the tensors of a pass.
    patches_at_ = std::max(bytes_.forward_workspace, bytes_.backward_workspace);
    bytes_.forward_workspace = bytes_.backward_workspace = patches_at_ + convolution_->workspace_bytes();
  }

  DeviceTensor handed(int tensor) const { return tensor < 0 ? DeviceTensor{} : tensors_[tensor]; }

  bool is_stored_at(int tensor, int other) const {
    return other >= 0 && first_in_storage_[tensor] == first_in_storage_[other];
  }

  std::byte* at(const PassCall& pass, int tensor) const {
    if (is_stored_at(tensor, program_.output)) return static_cast<std::byte*>(pass.output);
    if (is_stored_at(tensor, program_.input_gradient)) return static_cast<std::byte*>(pass.input_gradient);
    return address_of(pass.call, tensors_[tensor]);
  }
  std::uint8_t* mask(const PassCall& pass, int tensor) const {
    return reinterpret_cast<std::uint8_t*>(at(pass, tensor));
  }
  std::int32_t* integers(const PassCall& pass, int tensor) const {
    return reinterpret_cast<std::int32_t*>(at(pass, tensor));
  }

  const std::byte* weight(const PassCall& pass, const LayerStep& step) const {
    return pass.call.weights + parameter_at_[step.parameters[0]] * element_bytes_;
  }
  /// Returns the bias or gain that the step adds; null if it adds none.
  const float* vector(const PassCall& pass, const LayerStep& step) const {
    return step.parameters.empty() ? nullptr : pass.call.vector(parameter_at_[step.parameters[0]]);
  }
  float* gradient(const PassCall& pass, const LayerStep& step) const {
    return pass.call.gradients + parameter_at_[step.gradients[0]];
  }

  void multiply(const LayerStep& step, const PassCall& pass) const {
    const std::vector<std::int64_t>& shape = step.call()->shape;
    const GemmSize size{shape[0], shape[1], shape[2]};
    DeviceKernels& kernels = pass.call.kernels;
    switch (static_cast<GemmForm>(shape[4])) {
      case GemmForm::kForward:
        return kernels.linear_forward(at(pass, step.writes[0]), at(pass, step.reads[0]), weight(pass, step), size);
      case GemmForm::kInputGrad:
        return kernels.linear_input_grad(at(pass, step.writes[0]), at(pass, step.reads[0]), weight(pass, step), size);
      case GemmForm::kWeightGrad:
        return kernels.linear_weight_grad(gradient(pass, step), at(pass, step.reads[0]), at(pass, step.reads[1]), size);
      default:
        assert(!"a fused form stands in programs of decoder blocks alone");
    }
  }

  void drop(const LayerStep& step, const PassCall& pass) const {
    DropoutRows rows = dropped_;
    rows.first_sample = pass.call.first_sample;
    rows.columns = step.call()->shape[1];
    void* const dropped = at(pass, step.writes[0]);
    pass.call.kernels.dropout(dropped, at(pass, step.reads[0]), nullptr, dropout_key(pass.call, 0), rows,
                              numbers_.dropout, pass.call.numbers);
  }

  void convolve(const LayerStep& step, const PassCall& pass) const {
    DeviceKernels& kernels = pass.call.kernels;
    std::byte* const patches = pass.call.workspace + patches_at_;
    if (step.is(KernelKind::kConvolutionWeightGrad))
      return convolution_->weight_grad(kernels, gradient(pass, step), at(pass, step.reads[0]), at(pass, step.reads[1]),
                                       patches);
    std::byte* const to = at(pass, step.writes[0]);
    if (step.is(KernelKind::kConvolutionForward))
      convolution_->forward(kernels, to, at(pass, step.reads[0]), weight(pass, step), patches);
    else
      convolution_->input_grad(kernels, to, at(pass, step.reads[0]), weight(pass, step), patches);
  }

  /// Enqueues the kernel of one step.
  void enqueue(const LayerStep& step, const PassCall& pass) const {
    const KernelCall& kernel = *step.call();
    const std::vector<std::int64_t>& shape = kernel.shape;
    const DeviceLayerCall& call = pass.call;
    DeviceKernels& kernels = call.kernels;
    const auto read = [&](std::size_t i) { return at(pass, step.reads[i]); };
    const auto written = [&](std::size_t i) { return at(pass, step.writes[i]); };
    switch (kernel.kind) {
      case KernelKind::kGemm:
        return multiply(step, pass);
      case KernelKind::kBiasForward:
        return kernels.bias_forward(written(0), vector(pass, step), shape[0], shape[1]);
      case KernelKind::kBiasBackward:
        return kernels.bias_backward(gradient(pass, step), read(0), shape[0], shape[1]);
      case KernelKind::kActivationForward:
        return kernels.gelu_forward(written(0), read(0), shape[0] * shape[1], numbers_.exact_gelu);
      case KernelKind::kActivationBackward:
        return kernels.gelu_backward(written(0), read(1), shape[0] * shape[1], numbers_.exact_gelu);
      case KernelKind::kReluForward:
        return kernels.relu_forward(written(0), mask(pass, step.writes[1]), vector(pass, step), shape[0], shape[1]);
      case KernelKind::kReluBackward:
        return kernels.relu_backward(written(0), mask(pass, step.reads[1]), shape[0] * shape[1]);
      case KernelKind::kResidualAdd:  // the bias belongs to what is read first
        return kernels.residual_add(at(pass, *(step.writes.end() - 1)), read(1), read(0), vector(pass, step), shape[0],
                                    shape[1]);
      case KernelKind::kDropout:
        return drop(step, pass);
      case KernelKind::kConvolutionForward:
      case KernelKind::kConvolutionInputGrad:
      case KernelKind::kConvolutionWeightGrad:
        return convolve(step, pass);
      case KernelKind::kPoolingForward:
        return kernels.pooling_forward(written(0), step.writes.size() > 1 ? integers(pass, step.writes[1]) : nullptr,
                                       read(0), pooling_size(shape));
      case KernelKind::kPoolingBackward:
        return kernels.pooling_backward(
            written(0), read(0), step.reads.size() > 1 ? integers(pass, step.reads[1]) : nullptr, pooling_size(shape));
      case KernelKind::kCopy: {  // samples of the data, or the gradient that a loss has left
        const bool of_data = program_.tensors[step.reads[0]].origin == Origin::kHeld;
        return kernels.copy(written(0), of_data ? call.samples : read(0), shape[0] * element_bytes_);
      }
      case KernelKind::kCrossEntropy:
        return kernels.cross_entropy(call.losses, written(0), call.targets,
                                     {.rows = shape[0], .columns = shape[1], .valid = shape[1]}, call.gradient_scale,
                                     call.loss_scale);
      case KernelKind::kSquaredError:
        return kernels.squared_error(call.losses, written(0), call.sample_targets, shape[0], shape[1],
                                     call.gradient_scale, call.loss_scale);
      default:
        assert(!"the kernel belongs to decoder blocks");
    }
  }

  LayerProgram program_;
  std::vector<int> first_in_storage_;       // [tensor]
  std::vector<DeviceTensor> tensors_;       // [tensor]
  std::vector<std::int64_t> parameter_at_;  // [parameter] its first element
  LayerNumbers numbers_;
  DropoutRows dropped_;
  std::int64_t element_bytes_;
  DeviceLayerBytes bytes_;
  std::optional<ConvolutionProducts> convolution_;
  std::int64_t patches_at_ = 0;  // bytes in the workspace before a convolution's patches
};

}  // namespace

std::unique_ptr<DeviceLayer> make_program_layer(const Layer& layer, const LayerWork& work, std::int64_t element_bytes) {
  return std::make_unique<ProgramLayer>(layer, work, element_bytes);
}

}}  // namespace plumb::executor
