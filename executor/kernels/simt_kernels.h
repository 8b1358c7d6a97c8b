#pragma once
// Makes DeviceKernels from the bodies of kernels/simt, for tensors stored as S, on anything that can run them. A
// Launcher has
//
//   launch(body, items, lanes)                 enqueues a body whose blocks take `items` rows in turn
//   launch_elements(body, elements)            enqueues a body that divides elements
//   launch_warps(body)                         enqueues a body for tensor cores (kernels/simt/warp.h)
//   copy(to, from, bytes)
//   forward(S*, const S*, const S*, GemmSize), input_grad(...), weight_grad(float*, const S*, const S*, GemmSize)
//   scratch()                                  kScratchFloats floats, which the next product may overwrite
//   and, if its products include the operation that follows them, all three *_with_* of cuda/matrix_products.h
//
// and runs all of it in order. The code is written once: a GPU's stream runs it (executor/machines/cuda), and the tests run it
// on the host.

#include <algorithm>
#include <cassert>
#include <utility>

#include "executor/kernels/simt_state_space_kernels.h"
#include "kernels/simt/activation.h"
#include "kernels/simt/bias.h"
#include "kernels/simt/copy_columns.h"
#include "kernels/simt/dropout.h"
#include "kernels/simt/embedding.h"
#include "kernels/simt/fill.h"
#include "kernels/simt/losses/cross_entropy.h"
#include "kernels/simt/losses/vocab_parallel_cross_entropy.h"
#include "kernels/simt/norm.h"
#include "kernels/simt/residual.h"
#include "kernels/simt/rotary.h"

namespace plumb { inline namespace executor {

template <class S, class Launcher>
class SimtKernels final : public SimtStateSpaceKernels<S, Launcher> {
  using Others = SimtStateSpaceKernels<S, Launcher>;
  using Others::launcher_;
  using Others::stored;

 public:
  explicit SimtKernels(Launcher launcher) : Others(std::move(launcher)) {}

  void copy(void* to, const void* from, std::int64_t bytes) override { launcher_.copy(to, from, bytes); }
  void fill_zero(float* to, std::int64_t elements) override {
    launcher_.launch_elements(simt::FillZero{to, elements}, elements);
  }
  void widen(float* to, const void* from, std::int64_t elements) override {
    launcher_.launch_elements(simt::Widen<S>{to, stored(from), elements}, elements);
  }
  void copy_columns(void* to, std::int64_t to_width, const void* from, std::int64_t from_width,
                    const NormSize& size) override {
    launcher_.launch_elements(simt::CopyColumns<S>{stored(to), stored(from), to_width, from_width, size},
                              size.rows * size.columns);
  }

  void linear_forward(void* y, const void* x, const void* weight, const GemmSize& size) override {
    launcher_.forward(stored(y), stored(x), stored(weight), size);
  }
  void linear_input_grad(void* dx, const void* dy, const void* weight, const GemmSize& size) override {
    launcher_.input_grad(stored(dx), stored(dy), stored(weight), size);
  }
  void linear_weight_grad(float* dweight, const void* dy, const void* x, const GemmSize& size) override {
    launcher_.weight_grad(dweight, stored(dy), stored(x), size);
  }
  void linear_bias_forward(void* y, const void* x, const void* weight, const DeviceBias& bias,
                           const GemmSize& size) override {
    if constexpr (kHasEpilogues)
      if (launcher_.forward_with_bias(stored(y), stored(x), stored(weight), stored(bias.stored), size)) return;
    linear_forward(y, x, weight, size);
    bias_forward(y, bias.values, size.m, size.n);
  }
  void linear_gelu_forward(void* y, void* up, const void* x, const void* weight, const DeviceBias& bias,
                           const GemmSize& size) override {
    if constexpr (kHasEpilogues)
      if (launcher_.forward_with_gelu(stored(y), stored(up), stored(x), stored(weight), stored(bias.stored), size))
        return;
    if (bias.values != nullptr)
      linear_bias_forward(up, x, weight, bias, size);
    else
      linear_forward(up, x, weight, size);
    const std::int64_t elements = size.m * size.n;
    launcher_.launch_elements(simt::GeluForward<S>{stored(y), stored(up), elements, false}, elements);
  }
  void linear_bias_weight_grad(float* dweight, float* dbias, const void* dy, const void* x,
                               const GemmSize& size) override {
    if constexpr (kHasEpilogues)
      if (const float* sums = launcher_.weight_grad_with_sums(dweight, stored(dy), stored(x), size))
        return add_gradients(dbias, dbias, sums, size.m);
    linear_weight_grad(dweight, dy, x, size);
    bias_backward(dbias, dy, size.k, size.m);
  }

  void norm_forward(void* y, void* sum, const void* x, const void* residual, const DeviceNorm& norm,
                    const NormSize& size, float epsilon) override {
    launcher_.launch(simt::NormForward<S>{.y = stored(y),
                                          .sum = stored(sum),
                                          .mean = norm.mean,
                                          .rstd = norm.rstd,
                                          .x = stored(x),
                                          .residual = stored(residual),
                                          .gain = norm.gain,
                                          .bias = norm.bias,
                                          .size = size,
                                          .epsilon = epsilon},
                     size.rows, lanes_for(size.columns));
  }
  void norm_backward(void* dx, float* dgain, float* dbias, const void* dy, const void* past, const void* x,
                     const DeviceNorm& norm, const NormSize& size) override {
    assert((dbias == nullptr) == (norm.mean == nullptr));
    const std::int64_t groups = sum_groups(size.rows, 2 * size.columns);
    float* const parts = launcher_.scratch();
    launcher_.launch(simt::NormParameterParts<S>{.parts = parts,
                                                 .dy = stored(dy),
                                                 .x = stored(x),
                                                 .mean = norm.mean,
                                                 .rstd = norm.rstd,
                                                 .size = size,
                                                 .groups = groups},
                     groups * stretches(size.columns, kSumColumns), kColumnLanes);
    sum_parts(dgain, dbias, groups, size.columns);
    launcher_.launch(simt::NormBackward<S>{.dx = stored(dx),
                                           .dy = stored(dy),
                                           .residual_gradient = stored(past),
                                           .x = stored(x),
                                           .mean = norm.mean,
                                           .rstd = norm.rstd,
                                           .gain = norm.gain,
                                           .size = size},
                     size.rows, lanes_for(size.columns));
  }

  void activation_forward(void* y, const void* up, const MlpActivation& of) override {
    const std::int64_t elements = of.elements();
    if (of.gated)
      launcher_.launch_elements(simt::SwigluForward<S>{stored(y), stored(up), {of.rows, of.columns}}, elements);
    else
      launcher_.launch_elements(simt::GeluForward<S>{stored(y), stored(up), elements, of.exact_gelu}, elements);
  }
  void activation_backward(void* up, const void* dy, const MlpActivation& of) override {
    const std::int64_t elements = of.elements();
    if (of.gated)
      launcher_.launch_elements(simt::SwigluBackward<S>{stored(up), stored(dy), {of.rows, of.columns}}, elements);
    else
      launcher_.launch_elements(simt::GeluBackward<S>{stored(up), stored(dy), elements, of.exact_gelu}, elements);
  }

  void bias_forward(void* y, const float* bias, std::int64_t rows, std::int64_t columns) override {
    add_bias(stored(y), bias, rows, columns);
  }
  void bias_backward(float* dbias, const void* dy, std::int64_t rows, std::int64_t columns) override {
    sum_bias(dbias, stored(dy), rows, columns);
  }
  void router_bias_forward(float* scores, const float* bias, std::int64_t tokens, std::int64_t experts) override {
    add_bias(scores, bias, tokens, experts);
  }
  void router_bias_backward(float* dbias, const float* dscores, std::int64_t tokens, std::int64_t experts) override {
    sum_bias(dbias, dscores, tokens, experts);
  }
  void residual_add(void* z, const void* x, const void* y, const float* bias, std::int64_t rows,
                    std::int64_t columns) override {
    launcher_.launch_elements(simt::ResidualAdd<S>{stored(z), stored(x), stored(y), bias, rows, columns},
                              rows * columns);
  }
  void rotary(void* x, const float* table, const RotarySize& size, RotaryDirection direction) override {
    launcher_.launch_elements(simt::Rotary<S>{stored(x), table, size, direction},
                              size.tokens * size.heads * size.rotary_size / 2);
  }

  void dropout(void* y, const void* x, const void* residual, const DropoutKey& key, const DropoutRows& rows,
               double probability, const StepNumbers* numbers) override {
    launcher_.launch_elements(
        simt::Dropout<S>{stored(y), stored(x), stored(residual), key, rows, static_cast<float>(probability), numbers},
        rows.count * rows.tokens * rows.columns);
  }

  void embedding_forward(void* y, const std::int32_t* tokens, const void* table, const void* positions,
                         const EmbeddingSize& size) override {
    launcher_.launch(simt::EmbeddingForward<S>{stored(y), tokens, stored(table), stored(positions), size}, size.tokens,
                     lanes_for(size.columns));
  }
  void embedding_backward(float* dtable, float* dpositions, const void* dy, const std::int32_t* tokens,
                          const EmbeddingSize& size) override {
    assert(size.tokens <= kScratchFloats / 2);
    auto* const order = reinterpret_cast<std::int32_t*>(launcher_.scratch());
    std::int32_t* const occurrences = order + size.tokens;
    launcher_.launch(simt::TokenOrder{order, occurrences, tokens, size.tokens}, size.tokens, kColumnLanes);
    launcher_.launch(simt::EmbeddingBackward<S>{dtable, stored(dy), tokens, order, occurrences, size},
                     size.tokens * stretches(size.columns, kColumnLanes), kColumnLanes);
    if (dpositions == nullptr) return;
    launcher_.launch(simt::PositionBackward<S>{dpositions, stored(dy), size}, size.sequence, lanes_for(size.columns));
  }

  void cross_entropy(float* losses, void* logits, const std::int32_t* targets, const VocabPart& part,
                     float gradient_scale, const float* loss_scale) override {
    launcher_.launch(simt::CrossEntropy<S>{losses, stored(logits), targets, part, gradient_scale, loss_scale},
                     part.rows, lanes_for(part.columns));
  }

  void cross_entropy_parts(float* parts, const void* logits, const std::int32_t* targets,
                           const VocabPart& part) override {
    launcher_.launch(simt::CrossEntropyParts<S>{parts, stored(logits), targets, part}, part.rows,
                     lanes_for(part.columns));
  }
  void cross_entropy_from_parts(float* losses, void* logits, const float* all_parts, int ranks,
                                const std::int32_t* targets, const VocabPart& part, float gradient_scale,
                                const float* loss_scale) override {
    launcher_.launch(simt::CrossEntropyFromParts<S>{losses, stored(logits), all_parts, ranks, targets, part,
                                                    gradient_scale, loss_scale},
                     part.rows, lanes_for(part.columns));
  }

  void add_gradients(float* sum, const float* x, const float* y, std::int64_t elements) override {
    launcher_.launch_elements(simt::ResidualAdd<float>{sum, x, y, nullptr, elements, 1}, elements);
  }

 private:
  static constexpr bool kHasEpilogues = requires(Launcher launcher, S* stored, const GemmSize& size) {
    launcher.forward_with_bias(stored, stored, stored, stored, size);
  };
  static constexpr int kColumnLanes = 256;  // lanes of bodies that sum columns: eight groups of rows
  static constexpr int kFewestLanes = 32, kMostLanes = 1024;

  /// Returns the groups of rows whose `sums` are taken apart: of 64 rows or more, 128 groups at most, and no more than
  /// the scratch has room for. It decides the order of a sum, and so depends on nothing but sizes.
  static std::int64_t sum_groups(std::int64_t rows, std::int64_t sums) {
    constexpr std::int64_t kRows = 64, kMost = 128;
    return std::clamp<std::int64_t>(std::min(rows / kRows, kScratchFloats / sums), 1, kMost);
  }
  template <class T>
  void add_bias(T* y, const float* bias, std::int64_t rows, std::int64_t columns) {
    launcher_.launch_elements(simt::BiasForward<T>{y, bias, rows, columns}, rows * columns);
  }
  template <class T>
  void sum_bias(float* dbias, const T* dy, std::int64_t rows, std::int64_t columns) {
    const std::int64_t groups = sum_groups(rows, columns);
    float* const parts = launcher_.scratch();
    launcher_.launch(simt::BiasParts<T>{parts, dy, rows, columns, groups}, groups * stretches(columns, kSumColumns),
                     kColumnLanes);
    sum_parts(dbias, nullptr, groups, columns);
  }
  /// Adds the sums that lie in the scratch by groups.
  void sum_parts(float* to, float* other, std::int64_t groups, std::int64_t columns) {
    const std::int64_t width = other == nullptr ? columns : 2 * columns;
    launcher_.launch(simt::ColumnSumOfParts{to, other, launcher_.scratch(), groups, columns},
                     stretches(width, kSumColumns), kMostLanes);
  }
  static std::int64_t stretches(std::int64_t columns, std::int64_t each) { return (columns + each - 1) / each; }

  /// Returns the number of lanes, a power of two, so that each has eight columns at most (more where kMostLanes limits
  /// them).
  static int lanes_for(std::int64_t columns) {
    int lanes = kFewestLanes;
    while (lanes < kMostLanes && lanes * 8 < columns) lanes *= 2;
    return lanes;
  }
};

}}  // namespace plumb::executor
