#include "executor/program/calls/recorded_calls.h"

#include <utility>

namespace plumb { inline namespace executor {

void CallRecorder::add_piece() {
  RecordedPiece& piece = pieces_.emplace_back();
  piece.stream = aside_;
  if (aside_) {
    if (last_own_ >= 0) piece.behind.push_back(last_own_);
    return;
  }
  piece.behind = std::exchange(awaited_, {});
  last_own_ = static_cast<std::int32_t>(pieces_.size()) - 1;
}

void CallRecorder::open_piece() {
  const bool is_open = !pieces_.empty() && !pieces_.back().exchange && pieces_.back().bucket < 0 &&
                       pieces_.back().stream == aside_ && (aside_ || awaited_.empty());
  if (!is_open) add_piece();
}

void CallRecorder::exchange(DeviceExchange exchange) {
  add_piece();
  pieces_.back().exchange = std::move(exchange);
}

void CallRecorder::go_aside(DeviceStream stream) {
  aside_ = stream;
  add_piece();
}

std::int32_t CallRecorder::come_back() {
  aside_.reset();
  return static_cast<std::int32_t>(pieces_.size()) - 1;
}

void CallRecorder::complete_bucket(int bucket) {
  open_piece();
  pieces_.back().bucket = bucket;
}

std::vector<RecordedPiece> CallRecorder::take() {
  if (pieces_.empty()) add_piece();
  last_own_ = -1;
  return std::exchange(pieces_, {});
}

void CallRecorder::copy(void* to, const void* from, std::int64_t bytes) {
  add([=](DeviceKernels& kernels) { kernels.copy(to, from, bytes); });
}

void CallRecorder::fill_zero(float* to, std::int64_t elements) {
  add([=](DeviceKernels& kernels) { kernels.fill_zero(to, elements); });
}

void CallRecorder::widen(float* to, const void* from, std::int64_t elements) {
  add([=](DeviceKernels& kernels) { kernels.widen(to, from, elements); });
}

void CallRecorder::copy_columns(void* to, std::int64_t to_width, const void* from, std::int64_t from_width,
                                const NormSize& size) {
  add([=](DeviceKernels& kernels) { kernels.copy_columns(to, to_width, from, from_width, size); });
}

void CallRecorder::linear_forward(void* y, const void* x, const void* weight, const GemmSize& size) {
  add([=](DeviceKernels& kernels) { kernels.linear_forward(y, x, weight, size); });
}

void CallRecorder::linear_input_grad(void* dx, const void* dy, const void* weight, const GemmSize& size) {
  add([=](DeviceKernels& kernels) { kernels.linear_input_grad(dx, dy, weight, size); });
}

void CallRecorder::linear_weight_grad(float* dweight, const void* dy, const void* x, const GemmSize& size) {
  add([=](DeviceKernels& kernels) { kernels.linear_weight_grad(dweight, dy, x, size); });
}

void CallRecorder::linear_bias_forward(void* y, const void* x, const void* weight, const DeviceBias& bias,
                                       const GemmSize& size) {
  add([=](DeviceKernels& kernels) { kernels.linear_bias_forward(y, x, weight, bias, size); });
}

void CallRecorder::linear_gelu_forward(void* y, void* up, const void* x, const void* weight, const DeviceBias& bias,
                                       const GemmSize& size) {
  add([=](DeviceKernels& kernels) { kernels.linear_gelu_forward(y, up, x, weight, bias, size); });
}

void CallRecorder::linear_bias_weight_grad(float* dweight, float* dbias, const void* dy, const void* x,
                                           const GemmSize& size) {
  add([=](DeviceKernels& kernels) { kernels.linear_bias_weight_grad(dweight, dbias, dy, x, size); });
}

void CallRecorder::norm_forward(void* y, void* sum, const void* x, const void* residual, const DeviceNorm& norm,
                                const NormSize& size, float epsilon) {
  add([=](DeviceKernels& kernels) { kernels.norm_forward(y, sum, x, residual, norm, size, epsilon); });
}

void CallRecorder::norm_backward(void* dx, float* dgain, float* dbias, const void* dy, const void* past, const void* x,
                                 const DeviceNorm& norm, const NormSize& size) {
  add([=](DeviceKernels& kernels) { kernels.norm_backward(dx, dgain, dbias, dy, past, x, norm, size); });
}

void CallRecorder::activation_forward(void* y, const void* up, const MlpActivation& of) {
  add([=](DeviceKernels& kernels) { kernels.activation_forward(y, up, of); });
}

void CallRecorder::activation_backward(void* up, const void* dy, const MlpActivation& of) {
  add([=](DeviceKernels& kernels) { kernels.activation_backward(up, dy, of); });
}

void CallRecorder::bias_forward(void* y, const float* bias, std::int64_t rows, std::int64_t columns) {
  add([=](DeviceKernels& kernels) { kernels.bias_forward(y, bias, rows, columns); });
}

void CallRecorder::bias_backward(float* dbias, const void* dy, std::int64_t rows, std::int64_t columns) {
  add([=](DeviceKernels& kernels) { kernels.bias_backward(dbias, dy, rows, columns); });
}

void CallRecorder::residual_add(void* z, const void* x, const void* y, const float* bias, std::int64_t rows,
                                std::int64_t columns) {
  add([=](DeviceKernels& kernels) { kernels.residual_add(z, x, y, bias, rows, columns); });
}

void CallRecorder::rotary(void* x, const float* table, const RotarySize& size, RotaryDirection direction) {
  add([=](DeviceKernels& kernels) { kernels.rotary(x, table, size, direction); });
}

void CallRecorder::dropout(void* y, const void* x, const void* residual, const DropoutKey& key, const DropoutRows& rows,
                           double probability, const StepNumbers* numbers) {
  add([=](DeviceKernels& kernels) { kernels.dropout(y, x, residual, key, rows, probability, numbers); });
}

void CallRecorder::embedding_forward(void* y, const std::int32_t* tokens, const void* table, const void* positions,
                                     const EmbeddingSize& size) {
  add([=](DeviceKernels& kernels) { kernels.embedding_forward(y, tokens, table, positions, size); });
}

void CallRecorder::embedding_backward(float* dtable, float* dpositions, const void* dy, const std::int32_t* tokens,
                                      const EmbeddingSize& size) {
  add([=](DeviceKernels& kernels) { kernels.embedding_backward(dtable, dpositions, dy, tokens, size); });
}

void CallRecorder::cross_entropy(float* losses, void* logits, const std::int32_t* targets, const VocabPart& part,
                                 float gradient_scale, const float* loss_scale) {
  add([=](DeviceKernels& kernels) {
    kernels.cross_entropy(losses, logits, targets, part, gradient_scale, loss_scale);
  });
}

void CallRecorder::cross_entropy_parts(float* parts, const void* logits, const std::int32_t* targets,
                                       const VocabPart& part) {
  add([=](DeviceKernels& kernels) { kernels.cross_entropy_parts(parts, logits, targets, part); });
}

void CallRecorder::cross_entropy_from_parts(float* losses, void* logits, const float* all_parts, int ranks,
                                            const std::int32_t* targets, const VocabPart& part, float gradient_scale,
                                            const float* loss_scale) {
  add([=](DeviceKernels& kernels) {
    kernels.cross_entropy_from_parts(losses, logits, all_parts, ranks, targets, part, gradient_scale, loss_scale);
  });
}

void CallRecorder::add_gradients(float* sum, const float* x, const float* y, std::int64_t elements) {
  add([=](DeviceKernels& kernels) { kernels.add_gradients(sum, x, y, elements); });
}

}}  // namespace plumb::executor
