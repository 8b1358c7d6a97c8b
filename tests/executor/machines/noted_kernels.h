#pragma once
// Calls of DeviceKernels, noted as the planner's list has them (kernels/layer/kernel_call.h), or by a name of their own
// where it has no such kind. Nothing is computed.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "executor/kernels/device_kernels.h"
#include "kernels/layer.h"

namespace plumb::test {

struct NotedKernel {
  std::string name;
  std::vector<std::int64_t> shape;
  double elements = 0;  ///< that it moves, as the list says

  friend bool operator==(const NotedKernel&, const NotedKernel&) = default;
};

inline NotedKernel noted(const KernelCall& call) {
  return {std::string(kernel_name(call.kind)), call.shape, call.elements_moved};
}

class NotedKernels final : public DeviceKernels {
 public:
  explicit NotedKernels(std::int64_t element_bytes) : element_bytes_(element_bytes) {}

  std::vector<NotedKernel> take() { return std::exchange(calls_, {}); }

  void copy(void*, const void*, std::int64_t bytes) override { add(KernelKind::kCopy, {bytes / element_bytes_}); }
  void fill_zero(float*, std::int64_t elements) override { other("fill_zero", {elements}); }
  void widen(float*, const void*, std::int64_t elements) override { other("widen", {elements}); }
  void copy_columns(void*, std::int64_t, const void*, std::int64_t, const NormSize& size) override {
    add(KernelKind::kCopy, {size.rows * size.columns});
  }
  void linear_forward(void*, const void*, const void*, const GemmSize& size) override {
    product(size, GemmForm::kForward);
  }
  void linear_input_grad(void*, const void*, const void*, const GemmSize& size) override {
    product(size, GemmForm::kInputGrad);
  }
  void linear_weight_grad(float*, const void*, const void*, const GemmSize& size) override {
    product(size, GemmForm::kWeightGrad);
  }
  void linear_bias_forward(void*, const void*, const void*, const DeviceBias&, const GemmSize& size) override {
    product(size, GemmForm::kForwardBias);
  }
  void linear_gelu_forward(void*, void*, const void*, const void*, const DeviceBias&, const GemmSize& size) override {
    product(size, GemmForm::kForwardGelu);
  }
  void linear_bias_weight_grad(float*, float*, const void*, const void*, const GemmSize& size) override {
    product(size, GemmForm::kWeightGradBias);
  }
  void norm_forward(void*, void* sum, const void*, const void*, const DeviceNorm& norm, const NormSize& size,
                    float) override {
    add(KernelKind::kNormForward, {size.rows, size.columns, is_layer_norm(norm) + (sum != nullptr ? 2 : 0)});
  }
  void norm_backward(void*, float*, float*, const void*, const void*, const void*, const DeviceNorm& norm,
                     const NormSize& size) override {
    add(KernelKind::kNormBackward, {size.rows, size.columns, is_layer_norm(norm)});
  }
  void activation_forward(void*, const void*, const MlpActivation& of) override {
    add(KernelKind::kActivationForward, {of.rows, of.columns, of.gated ? 1 : 0});
  }
  void activation_backward(void*, const void*, const MlpActivation& of) override {
    add(KernelKind::kActivationBackward, {of.rows, of.columns, of.gated ? 1 : 0});
  }
  void bias_forward(void*, const float*, std::int64_t rows, std::int64_t columns) override {
    add(KernelKind::kBiasForward, {rows, columns});
  }
  void bias_backward(float*, const void*, std::int64_t rows, std::int64_t columns) override {
    add(KernelKind::kBiasBackward, {rows, columns});
  }
  void residual_add(void*, const void*, const void*, const float*, std::int64_t rows, std::int64_t columns) override {
    add(KernelKind::kResidualAdd, {rows, columns});
  }
  void rotary(void*, const float*, const RotarySize& size, RotaryDirection) override {
    add(KernelKind::kRotary, {size.tokens, size.heads, size.rotary_size});
  }
  void dropout(void*, const void*, const void*, const DropoutKey&, const DropoutRows& rows, double,
               const StepNumbers*) override {
    add(KernelKind::kDropout, {rows.count * rows.tokens, rows.columns});
  }
  void embedding_forward(void*, const std::int32_t*, const void*, const void* positions,
                         const EmbeddingSize& size) override {
    add(KernelKind::kEmbeddingForward, {size.tokens, size.columns, positions != nullptr ? 1 : 0});
  }
  void embedding_backward(float*, float* dpositions, const void*, const std::int32_t*,
                          const EmbeddingSize& size) override {
    add(KernelKind::kEmbeddingBackward, {size.tokens, size.columns, dpositions != nullptr ? 1 : 0});
  }
  void cross_entropy(float*, void*, const std::int32_t*, const VocabPart& part, float, const float*) override {
    add(KernelKind::kCrossEntropy, {part.rows, part.columns});
  }
  void cross_entropy_parts(float*, const void*, const std::int32_t*, const VocabPart& part) override {
    other("cross_entropy_parts", {part.rows, part.columns});
  }
  void cross_entropy_from_parts(float*, void*, const float*, int, const std::int32_t*, const VocabPart& part, float,
                                const float*) override {
    other("cross_entropy_from_parts", {part.rows, part.columns});
  }
  void add_gradients(float*, const float*, const float*, std::int64_t elements) override {
    other("add_gradients", {elements});
  }

  void sum_of_squares(float*, const float*, std::int64_t elements, float) override {
    other("sum_of_squares", {elements});
  }
  void decide_step(StepNumbers*, const float*, std::int64_t count, float) override { other("decide_step", {count}); }
  void adamw_update(const DeviceUpdate& update, const AdamW&) override { add(KernelKind::kAdamW, {update.elements}); }
  void adamw_8bit_update(const DeviceUpdate& update, const DeviceByteMoments&, const AdamW&) override {
    add(KernelKind::kAdamW8Bit, {update.elements});
  }
  void sgd_update(const DeviceUpdate& update, const Sgd&) override { add(KernelKind::kSgd, {update.elements}); }
  void lion_update(const DeviceUpdate& update, const Lion&) override { add(KernelKind::kLion, {update.elements}); }
  void adafactor_update(const DeviceUpdate& update, const DeviceFactors& factors, const Adafactor&) override {
    const bool is_vector = factors.column_sums == nullptr;
    const MatrixStackSize& size = factors.size;
    add(KernelKind::kAdafactor,
        {is_vector ? 1 : size.matrices, is_vector ? 0 : size.rows, is_vector ? update.elements : size.columns});
  }

  void router_scores(float*, const void*, const void*, const RouterProduct& size) override {
    router(size, GemmForm::kForward);
  }
  void router_input_grad(void*, const float*, const void*, const RouterProduct& size) override {
    router(size, GemmForm::kInputGrad);
  }
  void router_weight_grad(float*, const float*, const void*, const RouterProduct& size) override {
    router(size, GemmForm::kWeightGrad);
  }
  void route(float*, const DeviceRoutes&, const PickRouting& size, bool) override {
    add(KernelKind::kRouter, {size.tokens(), size.experts, size.picks});
  }
  void pick(float*, const DeviceRoutes&, const PickRouting& size, bool) override { other("pick", {size.tokens()}); }
  void place_shared_picks(const DeviceRoutes&, const SharedPickRoom&, const SharedPicks&) override {
    other("place_shared_picks", {});
  }
  void sum_loads(std::int32_t*, const std::int32_t*, std::int64_t, std::int64_t lists) override {
    other("sum_loads", {lists});
  }
  void route_backward(float*, const float*, const DeviceRoutes&, const PickRouting& size, bool, const float*) override {
    add(KernelKind::kRouter, {size.tokens(), size.experts, size.picks});
  }
  void balance_loss(float*, float*, const float*, const DeviceRoutes&, const PickRouting& size,
                    const BalanceScale&) override {
    other("balance_loss", {size.tokens(), size.experts});
  }
  void place_in_blocks(const DeviceRoutes&, std::int32_t*, std::int64_t picks, const ExpertBlocks&) override {
    other("place_in_blocks", {picks});
  }
  void place_received(std::int32_t*, std::int32_t*, const std::int32_t*, const ExpertBlocks&) override {
    other("place_received", {});
  }
  void place_singles(float*, const float*, const std::int32_t*, std::int64_t count) override {
    other("place_singles", {count});
  }
  void take_singles(float*, const float*, const std::int32_t*, std::int64_t count) override {
    other("take_singles", {count});
  }
  void place_rows(void*, const void*, const std::int32_t*, const CopyRowsSize& size) override {
    add(KernelKind::kCopyRows, {size.tokens * size.picks, size.columns});
  }
  void sum_placed_rows(void*, const void*, const std::int32_t*, const float*, const CopyRowsSize& size) override {
    add(KernelKind::kCopyRows, {size.tokens * size.picks, size.columns});
  }
  void weigh_picks(float*, void*, void*, const void*, const DeviceRoutes&, const WeighedPicks& size) override {
    add(KernelKind::kWeighPicks, {size.picks, size.ffn, size.hidden});
  }
  void experts_forward(void*, const void*, const void*, const ExpertRows& rows, std::int64_t out,
                       std::int64_t in) override {
    experts({each(rows), out, in, rows.experts, 0}, GemmForm::kForward);
  }
  void experts_input_grad(void*, const void*, const void*, const ExpertRows& rows, std::int64_t in,
                          std::int64_t out) override {
    experts({each(rows), in, out, rows.experts, 0}, GemmForm::kInputGrad);
  }
  void experts_weight_grad(float*, const void*, const void*, const ExpertRows& rows, std::int64_t out,
                           std::int64_t in) override {
    experts({out, in, each(rows), rows.experts, 0}, GemmForm::kWeightGrad);
  }

  void split_heads(void*, const void*, const HeadShares&) override { other("split_heads", {}); }
  void join_heads(void*, const void*, const HeadShares&) override { other("join_heads", {}); }
  void transpose_blocks(void*, const void*, const BlockMatrix&) override { other("transpose_blocks", {}); }
  void narrow_columns(void*, std::int64_t, const float*, const NormSize& size) override {
    other("narrow_columns", {size.rows, size.columns});
  }
  void attention_forward(void*, float*, float*, const AttentionOperands& of) override {
    if (of.keys_values != nullptr) return other("attention_forward of a block", {});
    attention(KernelKind::kAttentionForward, of.block.size);
  }
  void attention_backward(void*, float*, float*, float*, const void*, const void*, const float*,
                          const AttentionOperands& of) override {
    if (of.keys_values != nullptr) return other("attention_backward of a block", {});
    attention(KernelKind::kAttentionBackward, of.block.size);
  }

  void image_to_patches(void*, const void*, const ConvolutionSize&, std::int64_t) override {
    other("image_to_patches", {});
  }
  void patches_to_image(void*, const void*, const ConvolutionSize&, std::int64_t) override {
    other("patches_to_image", {});
  }
  void pooling_forward(void*, std::int32_t*, const void*, const PoolingSize&) override { other("pooling_forward", {}); }
  void pooling_backward(void*, const void*, const std::int32_t*, const PoolingSize&) override {
    other("pooling_backward", {});
  }
  void relu_forward(void*, std::uint8_t*, const float*, std::int64_t rows, std::int64_t columns) override {
    add(KernelKind::kReluForward, {rows, columns});
  }
  void relu_backward(void*, const std::uint8_t*, std::int64_t elements) override {
    add(KernelKind::kReluBackward, {1, elements});
  }
  void squared_error(float*, void*, const float*, std::int64_t rows, std::int64_t columns, float,
                     const float*) override {
    add(KernelKind::kSquaredError, {rows, columns});
  }

  void causal_convolution_forward(void*, const void*, const void*, const float*,
                                  const CausalConvolutionSize& size) override {
    add(KernelKind::kCausalConvolutionForward, {size.batch, size.sequence, size.channels, size.taps});
  }
  void causal_convolution_backward(void*, float*, float*, const void*, const void*, const float*,
                                   const CausalConvolutionSize& size) override {
    add(KernelKind::kCausalConvolutionBackward, {size.batch, size.sequence, size.channels, size.taps});
  }
  void state_space_forward(void*, const void*, const void*, float*, const StateSpaceParameters&,
                           const StateSpaceSize& size) override {
    states(KernelKind::kStateSpaceForward, size);
  }
  void state_space_backward(void*, void*, float*, const StateSpaceGradients&, const void*, const StateSpaceParameters&,
                            const StateSpaceSize& size) override {
    states(KernelKind::kStateSpaceBackward, size);
  }
  void gated_norm_forward(void*, float*, const void*, const void*, const float*, const GatedNormSize& size,
                          float) override {
    add(KernelKind::kGatedNormForward, {size.rows, size.columns, size.groups});
  }
  void gated_norm_backward(void*, void*, float*, const void*, const void*, const float*, const float*,
                           const GatedNormSize& size) override {
    add(KernelKind::kGatedNormBackward, {size.rows, size.columns, size.groups});
  }

 private:
  static std::int64_t is_layer_norm(const DeviceNorm& norm) { return norm.mean != nullptr ? 1 : 0; }
  /// Rows of an expert, where all have as many.
  static std::int64_t each(const ExpertRows& rows) { return (rows.rows + rows.experts - 1) / rows.experts; }

  void add(KernelKind kind, std::vector<std::int64_t> shape) {
    calls_.push_back(noted(kernel_call(kind, std::move(shape))));
  }
  void other(std::string name, std::vector<std::int64_t> shape) {
    calls_.push_back({std::move(name), std::move(shape), 0});
  }
  void product(const GemmSize& size, GemmForm form) {
    add(KernelKind::kGemm, {size.m, size.n, size.k, 1, static_cast<std::int64_t>(form)});
  }
  void experts(std::vector<std::int64_t> shape, GemmForm form) {
    shape.back() = static_cast<std::int64_t>(form);
    add(KernelKind::kExpertProducts, std::move(shape));
  }
  void router(const RouterProduct& size, GemmForm form) {
    add(KernelKind::kRouterProduct, {size.tokens, size.experts, size.hidden, static_cast<std::int64_t>(form)});
  }
  void states(KernelKind kind, const StateSpaceSize& size) {
    add(kind, {size.batch, size.sequence, size.heads, size.head_size, size.groups, size.state_size, size.chunk});
  }
  void attention(KernelKind kind, const AttentionSize& size) {
    add(kind, {size.batch, size.sequence, size.heads, size.kv_heads, size.head_size, size.window});
  }

  std::int64_t element_bytes_;
  std::vector<NotedKernel> calls_;
};

}  // namespace plumb::test
