#pragma once
// A rank's call on the device as a value: kernels in order, cut into pieces where the rank exchanges something with a
// group, and where a gradient bucket is complete. Addresses do not change from step to step, so that a call is recorded
// once, before the first step, and enqueued in each.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "executor/groups/device_exchange.h"
#include "executor/kernels/device_kernels.h"
#include "executor/program/device/device_program.h"

namespace plumb { inline namespace executor {

struct RecordedPiece {
  std::vector<std::function<void(DeviceKernels&)>> work;
  std::optional<DeviceExchange> exchange;  ///< if there is one, there is no work
  int bucket = -1;                         ///< gradient bucket that is complete behind it; -1: none
  std::optional<DeviceStream> stream;      ///< another stream than the call's
  std::vector<std::int32_t> behind;        ///< pieces of the call that it waits for on other streams
};

/// Takes calls of kernels and enqueues none. The layers that calls name outlive the pieces.
class CallRecorder final : public DeviceKernels {
 public:
  /// Adds a piece with an exchange, behind which the calls that follow stand.
  void exchange(DeviceExchange exchange);
  void complete_bucket(int bucket);
  /// Opens a piece for kernels, also on ranks that have none: all ranks of a call have as many pieces.
  void open_piece();

  /// Puts the calls that follow on another stream of the rank, behind those that the call's own stream has so far,
  /// until come_back(), which returns the number of the last piece there.
  void go_aside(DeviceStream stream);
  std::int32_t come_back();
  /// Puts the calls that follow on the call's stream behind that piece.
  void await(std::int32_t piece) { awaited_.push_back(piece); }

  /// Returns the pieces, one at least.
  std::vector<RecordedPiece> take();

  void copy(void* to, const void* from, std::int64_t bytes) override;
  void fill_zero(float* to, std::int64_t elements) override;
  void widen(float* to, const void* from, std::int64_t elements) override;
  void copy_columns(void* to, std::int64_t to_width, const void* from, std::int64_t from_width,
                    const NormSize& size) override;
  void linear_forward(void* y, const void* x, const void* weight, const GemmSize& size) override;
  void linear_input_grad(void* dx, const void* dy, const void* weight, const GemmSize& size) override;
  void linear_weight_grad(float* dweight, const void* dy, const void* x, const GemmSize& size) override;
  void linear_bias_forward(void* y, const void* x, const void* weight, const DeviceBias& bias,
                           const GemmSize& size) override;
  void linear_gelu_forward(void* y, void* up, const void* x, const void* weight, const DeviceBias& bias,
                           const GemmSize& size) override;
  void linear_bias_weight_grad(float* dweight, float* dbias, const void* dy, const void* x,
                               const GemmSize& size) override;
  void norm_forward(void* y, void* sum, const void* x, const void* residual, const DeviceNorm& norm,
                    const NormSize& size, float epsilon) override;
  void norm_backward(void* dx, float* dgain, float* dbias, const void* dy, const void* past, const void* x,
                     const DeviceNorm& norm, const NormSize& size) override;
  void activation_forward(void* y, const void* up, const MlpActivation& of) override;
  void activation_backward(void* up, const void* dy, const MlpActivation& of) override;
  void bias_forward(void* y, const float* bias, std::int64_t rows, std::int64_t columns) override;
  void bias_backward(float* dbias, const void* dy, std::int64_t rows, std::int64_t columns) override;
  void residual_add(void* z, const void* x, const void* y, const float* bias, std::int64_t rows,
                    std::int64_t columns) override;
  void rotary(void* x, const float* table, const RotarySize& size, RotaryDirection direction) override;
  void dropout(void* y, const void* x, const void* residual, const DropoutKey& key, const DropoutRows& rows,
               double probability, const StepNumbers* numbers) override;
  void embedding_forward(void* y, const std::int32_t* tokens, const void* table, const void* positions,
                         const EmbeddingSize& size) override;
  void embedding_backward(float* dtable, float* dpositions, const void* dy, const std::int32_t* tokens,
                          const EmbeddingSize& size) override;
  void cross_entropy(float* losses, void* logits, const std::int32_t* targets, const VocabPart& part,
                     float gradient_scale, const float* loss_scale) override;
  void cross_entropy_parts(float* parts, const void* logits, const std::int32_t* targets,
                           const VocabPart& part) override;
  void cross_entropy_from_parts(float* losses, void* logits, const float* all_parts, int ranks,
                                const std::int32_t* targets, const VocabPart& part, float gradient_scale,
                                const float* loss_scale) override;
  void add_gradients(float* sum, const float* x, const float* y, std::int64_t elements) override;

  // Optimizers (recorded_update_calls.cpp).
  void sum_of_squares(float* partials, const float* x, std::int64_t elements, float limit) override;
  void decide_step(StepNumbers* numbers, const float* partials, std::int64_t count, float clip_norm) override;
  void adamw_update(const DeviceUpdate& update, const AdamW& optimizer) override;
  void adamw_8bit_update(const DeviceUpdate& update, const DeviceByteMoments& moments, const AdamW& optimizer) override;
  void sgd_update(const DeviceUpdate& update, const Sgd& optimizer) override;
  void lion_update(const DeviceUpdate& update, const Lion& optimizer) override;
  void adafactor_update(const DeviceUpdate& update, const DeviceFactors& factors, const Adafactor& optimizer) override;
  void balance_update(const DeviceUpdate& update, float rate) override;

  // Experts (recorded_expert_calls.cpp).
  void router_scores(float* scores, const void* x, const void* weight, const RouterProduct& size) override;
  void router_input_grad(void* dx, const float* dscores, const void* weight, const RouterProduct& size) override;
  void router_weight_grad(float* dweight, const float* dscores, const void* x, const RouterProduct& size) override;
  void router_bias_forward(float* scores, const float* bias, std::int64_t tokens, std::int64_t experts) override;
  void router_bias_backward(float* dbias, const float* dscores, std::int64_t tokens, std::int64_t experts) override;
  void route(float* scores, const DeviceRoutes& routes, const PickRouting& size, const RouterRule& rule) override;
  void pick(float* scores, const DeviceRoutes& routes, const PickRouting& size, const RouterRule& rule) override;
  void place_shared_picks(const DeviceRoutes& routes, const SharedPickRoom& room, const SharedPicks& size) override;
  void sum_loads(std::int32_t* sums, const std::int32_t* loads, std::int64_t slices, std::int64_t lists) override;
  void route_backward(float* probabilities, const float* weight_gradients, const DeviceRoutes& routes,
                      const PickRouting& size, const RouterRule& rule, const float* added) override;
  void add_excess_picks(float* excess, const std::int32_t* picks, const PickRouting& size) override;
  void balance_loss(float* losses, float* added, const float* probabilities, const DeviceRoutes& routes,
                    const PickRouting& size, const BalanceScale& scale) override;
  void place_in_blocks(const DeviceRoutes& routes, std::int32_t* counts, std::int64_t picks,
                       const ExpertBlocks& size) override;
  void place_received(std::int32_t* places, std::int32_t* bounds, const std::int32_t* counts,
                      const ExpertBlocks& size) override;
  void place_singles(float* placed, const float* values, const std::int32_t* places, std::int64_t count) override;
  void take_singles(float* values, const float* placed, const std::int32_t* places, std::int64_t count) override;
  void place_rows(void* placed, const void* rows, const std::int32_t* places, const CopyRowsSize& size) override;
  void sum_placed_rows(void* rows, const void* placed, const std::int32_t* places, const float* weights,
                       const CopyRowsSize& size) override;
  void weigh_picks(float* weight_gradients, void* activation_gradient, void* output_gradient, const void* activation,
                   const DeviceRoutes& routes, const WeighedPicks& size) override;
  void experts_forward(void* y, const void* x, const void* weights, const ExpertRows& rows, std::int64_t out,
                       std::int64_t in) override;
  void experts_input_grad(void* dx, const void* dy, const void* weights, const ExpertRows& rows, std::int64_t in,
                          std::int64_t out) override;
  void experts_weight_grad(float* dweights, const void* dy, const void* x, const ExpertRows& rows, std::int64_t out,
                           std::int64_t in) override;
  void experts_bias_forward(void* y, const void* biases, const ExpertRows& rows, std::int64_t columns) override;
  void experts_bias_backward(float* dbiases, const void* dy, const ExpertRows& rows, std::int64_t columns) override;

  // Attention and context groups (recorded_context_calls.cpp).
  void split_heads(void* blocks, const void* rows, const HeadShares& size) override;
  void join_heads(void* rows, const void* blocks, const HeadShares& size) override;
  void transpose_blocks(void* to, const void* from, const BlockMatrix& size) override;
  void narrow_columns(void* to, std::int64_t to_width, const float* from, const NormSize& size) override;
  void join_latent_heads(void* qkv, const void* queries, const void* shared, const void* keys_values,
                         const LatentHeads& size) override;
  void split_latent_heads(void* dqueries, void* dshared, void* dkeys_values, const void* dqkv,
                          const LatentHeads& size) override;
  void attention_forward(void* output, float* sums, float* log_sum_exp, const AttentionOperands& of) override;
  void attention_backward(void* dqkv, float* gradients, float* sums, float* products, const void* doutput,
                          const void* output, const float* log_sum_exp, const AttentionOperands& of) override;

  // Images (recorded_image_calls.cpp).
  void image_to_patches(void* patches, const void* images, const ConvolutionSize& size, std::int64_t group) override;
  void patches_to_image(void* images, const void* patches, const ConvolutionSize& size, std::int64_t group) override;
  void pooling_forward(void* y, std::int32_t* places, const void* x, const PoolingSize& size) override;
  void pooling_backward(void* dx, const void* dy, const std::int32_t* places, const PoolingSize& size) override;
  void relu_forward(void* x, std::uint8_t* mask, const float* bias, std::int64_t rows, std::int64_t columns) override;
  void relu_backward(void* dy, const std::uint8_t* mask, std::int64_t elements) override;
  void squared_error(float* losses, void* y, const float* targets, std::int64_t rows, std::int64_t columns,
                     float gradient_scale, const float* loss_scale) override;

  // Mamba-2's blocks (recorded_state_space_calls.cpp).
  void causal_convolution_forward(void* y, const void* x, const void* weight, const float* bias,
                                  const CausalConvolutionSize& size) override;
  void causal_convolution_backward(void* x, float* dweight, float* dbias, const void* dy, const void* weight,
                                   const float* bias, const CausalConvolutionSize& size) override;
  void state_space_forward(void* y, const void* xbc, const void* steps, float* scratch,
                           const StateSpaceParameters& parameters, const StateSpaceSize& size) override;
  void state_space_backward(void* xbc, void* steps, float* scratch, const StateSpaceGradients& gradients,
                            const void* dy, const StateSpaceParameters& parameters,
                            const StateSpaceSize& size) override;
  void gated_norm_forward(void* out, float* rstd, const void* y, const void* z, const float* gain,
                          const GatedNormSize& size, float epsilon) override;
  void gated_norm_backward(void* dy, void* z, float* dgain, const void* dout, const void* y, const float* rstd,
                           const float* gain, const GatedNormSize& size) override;

 private:
  template <class Work>
  void add(Work work) {
    open_piece();
    pieces_.back().work.emplace_back(std::move(work));
  }

  void add_piece();

  std::vector<RecordedPiece> pieces_;
  std::optional<DeviceStream> aside_;
  std::vector<std::int32_t> awaited_;  // by the next piece on the call's stream
  std::int32_t last_own_ = -1;         // piece on the call's stream
};

}}  // namespace plumb::executor
