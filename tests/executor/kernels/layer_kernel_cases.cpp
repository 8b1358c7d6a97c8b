#include "tests/executor/kernels/kernel_cases.h"

namespace plumb::test {
namespace {

/// Odd sizes, or, every other time, those that suit tensor cores.
GemmSize gemm_size(KernelOperands& with) {
  if (with.coin()) return {with.size(1, 150), with.size(1, 150), with.size(1, 150)};
  return {8 * with.size(1, 20), 8 * with.size(1, 20), 8 * with.size(1, 20)};
}

NormSize norm_size(KernelOperands& with) {
  return {with.size(1, 200), with.size(1, 700)};
}

/// Gain, bias and statistics, of RMSNorm every other time.
DeviceNorm norm_of(KernelOperands& with, const NormSize& size, bool has_statistics) {
  const bool has_bias = with.coin();
  const auto statistics = [&] { return has_statistics ? with.floats(size.rows) : with.float_room(size.rows); };
  return {.gain = with.floats(size.columns),
          .bias = has_bias ? with.floats(size.columns) : nullptr,
          .mean = has_bias ? statistics() : nullptr,
          .rstd = statistics()};
}

CaseCall copies(KernelOperands& with) {
  const std::int64_t elements = with.size(1, 3000);
  const void* from = with.stored(elements);
  void* to = with.stored_room(elements);
  float *zeros = with.floats(elements), *wide = with.float_room(elements), *sum = with.float_room(elements);
  const float *x = with.floats(elements), *y = with.floats(elements);
  const std::int64_t bytes = elements * with.element_bytes();
  return [=](DeviceKernels& kernels) {
    kernels.copy(to, from, bytes);
    kernels.fill_zero(zeros, elements);
    kernels.widen(wide, from, elements);
    kernels.add_gradients(sum, x, y, elements);
  };
}

CaseCall columns(KernelOperands& with) {
  const NormSize size = norm_size(with);
  const std::int64_t from_width = size.columns + with.size(0, 9), to_width = size.columns + with.size(0, 9);
  const void* from = with.stored(size.rows * from_width);
  void* to = with.stored(size.rows * to_width);
  return [=](DeviceKernels& kernels) { kernels.copy_columns(to, to_width, from, from_width, size); };
}

CaseCall product(KernelOperands& with) {
  const GemmSize size = gemm_size(with);
  void* y = with.stored_room(size.m * size.n);
  const void *x = with.stored(size.m * size.k), *weight = with.weights(size.n * size.k);
  return [=](DeviceKernels& kernels) { kernels.linear_forward(y, x, weight, size); };
}

CaseCall product_of_input_grad(KernelOperands& with) {
  const GemmSize size = gemm_size(with);
  void* dx = with.stored_room(size.m * size.n);
  const void *dy = with.stored(size.m * size.k), *weight = with.weights(size.k * size.n);
  return [=](DeviceKernels& kernels) { kernels.linear_input_grad(dx, dy, weight, size); };
}

CaseCall product_of_weight_grad(KernelOperands& with) {
  const GemmSize size = gemm_size(with);
  float* dweight = with.floats(size.m * size.n);
  const void *dy = with.stored(size.k * size.m), *x = with.stored(size.k * size.n);
  return [=](DeviceKernels& kernels) { kernels.linear_weight_grad(dweight, dy, x, size); };
}

CaseCall product_with_bias(KernelOperands& with) {
  const GemmSize size = gemm_size(with);
  void* y = with.stored_room(size.m * size.n);
  const void *x = with.stored(size.m * size.k), *weight = with.weights(size.n * size.k);
  const KernelOperands::Twins bias = with.twins(size.n);
  return [=](DeviceKernels& kernels) {
    kernels.linear_bias_forward(y, x, weight, {.values = bias.floats, .stored = bias.stored}, size);
  };
}

CaseCall product_with_gelu(KernelOperands& with) {
  const GemmSize size = gemm_size(with);
  void *y = with.stored_room(size.m * size.n), *up = with.stored_room(size.m * size.n);
  const void *x = with.stored(size.m * size.k), *weight = with.weights(size.n * size.k, 0.3F);
  const bool has_bias = with.coin();
  const KernelOperands::Twins twins = with.twins(size.n);
  const DeviceBias bias = has_bias ? DeviceBias{.values = twins.floats, .stored = twins.stored} : DeviceBias{};
  return [=](DeviceKernels& kernels) { kernels.linear_gelu_forward(y, up, x, weight, bias, size); };
}

CaseCall product_with_bias_sums(KernelOperands& with) {
  const GemmSize size = gemm_size(with);
  float *dweight = with.floats(size.m * size.n), *dbias = with.floats(size.m);
  const void *dy = with.stored(size.k * size.m), *x = with.stored(size.k * size.n);
  return [=](DeviceKernels& kernels) { kernels.linear_bias_weight_grad(dweight, dbias, dy, x, size); };
}

CaseCall norm_forward(KernelOperands& with) {
  const NormSize size = norm_size(with);
  const std::int64_t area = size.rows * size.columns;
  const DeviceNorm norm = norm_of(with, size, false);
  const bool has_residual = with.coin();
  void *y = with.stored_room(area), *sum = has_residual ? with.stored_room(area) : nullptr;
  const void *x = with.stored(area), *residual = has_residual ? with.stored(area) : nullptr;
  return [=](DeviceKernels& kernels) { kernels.norm_forward(y, sum, x, residual, norm, size, 1e-5F); };
}

CaseCall norm_backward(KernelOperands& with) {
  const NormSize size = norm_size(with);
  const std::int64_t area = size.rows * size.columns;
  const DeviceNorm norm = norm_of(with, size, true);
  float *dgain = with.floats(size.columns), *dbias = norm.bias != nullptr ? with.floats(size.columns) : nullptr;
  void* dx = with.stored_room(area);
  const void *dy = with.stored(area), *x = with.stored(area), *past = with.coin() ? with.stored(area) : nullptr;
  return [=](DeviceKernels& kernels) { kernels.norm_backward(dx, dgain, dbias, dy, past, x, norm, size); };
}

CaseCall activation(KernelOperands& with) {
  const MlpActivation of{
      .rows = with.size(1, 40), .columns = with.size(1, 300), .gated = with.coin(), .exact_gelu = with.coin()};
  void *y = with.stored_room(of.elements()), *up = with.stored(of.elements() * (of.gated ? 2 : 1), 4);
  const void* dy = with.stored(of.elements());
  return [=](DeviceKernels& kernels) {
    kernels.activation_forward(y, up, of);
    kernels.activation_backward(up, dy, of);
  };
}

CaseCall biases(KernelOperands& with) {
  const NormSize size = norm_size(with);
  const std::int64_t area = size.rows * size.columns;
  void *y = with.stored(area), *z = with.stored_room(area);
  const void *x = with.stored(area), *dy = with.stored(area), *branch = with.stored(area);
  const float *bias = with.floats(size.columns), *of_residual = with.coin() ? bias : nullptr;
  float* dbias = with.floats(size.columns);
  return [=](DeviceKernels& kernels) {
    kernels.bias_forward(y, bias, size.rows, size.columns);
    kernels.bias_backward(dbias, dy, size.rows, size.columns);
    kernels.residual_add(z, x, branch, of_residual, size.rows, size.columns);
  };
}

CaseCall rotary(KernelOperands& with) {
  const std::int64_t sequence = with.size(1, 30), heads = with.size(1, 5), head_size = 2 * with.size(1, 20);
  const RotarySize size{.tokens = sequence * with.size(1, 3),
                        .sequence = sequence,
                        .heads = heads,
                        .head_size = head_size,
                        .row_width = heads * head_size + with.size(0, 11),
                        .rotary_size = 2 * with.size(1, head_size / 2)};
  void* x = with.stored(size.tokens * size.row_width);
  const float* table = with.floats(sequence * size.rotary_size);
  const RotaryDirection direction = with.coin() ? RotaryDirection::kForward : RotaryDirection::kBackward;
  return [=](DeviceKernels& kernels) { kernels.rotary(x, table, size, direction); };
}

CaseCall dropout(KernelOperands& with) {
  const DropoutRows rows{.first_sample = with.size(0, 5),
                         .count = with.size(1, 4),
                         .first_token = with.size(0, 5),
                         .tokens = with.size(1, 20),
                         .columns = with.size(1, 90),
                         .first_column = with.size(0, 5)};
  const std::int64_t area = rows.count * rows.tokens * rows.columns;
  const DropoutKey key{.seed = with.word(), .layer = 3, .place = 1};
  void* y = with.stored_room(area);
  const void *x = with.stored(area), *residual = with.coin() ? with.stored(area) : nullptr;
  const StepNumbers* numbers = with.numbers({.replay = with.word()});
  return [=](DeviceKernels& kernels) { kernels.dropout(y, x, residual, key, rows, 0.3, numbers); };
}

CaseCall embedding(KernelOperands& with) {
  const std::int64_t vocab = with.size(5, 60), sequence = with.size(1, 50);
  const EmbeddingSize size{.tokens = with.size(1, 4) * sequence, .sequence = sequence, .columns = with.size(1, 300)};
  const std::int64_t area = size.tokens * size.columns;
  const bool has_positions = with.coin();
  const std::int32_t* read = with.integers(size.tokens, vocab);
  const void* table = with.stored(vocab * size.columns);
  const void* positions = has_positions ? with.stored(sequence * size.columns) : nullptr;
  void* y = with.stored_room(area);
  float* dtable = with.floats(vocab * size.columns);
  float* dpositions = has_positions ? with.floats(sequence * size.columns) : nullptr;
  const void* dy = with.stored(area);
  return [=](DeviceKernels& kernels) {
    kernels.embedding_forward(y, read, table, positions, size);
    kernels.embedding_backward(dtable, dpositions, dy, read, size);
  };
}

CaseCall cross_entropy(KernelOperands& with) {
  const std::int64_t rows = with.size(1, 40), vocab = with.size(2, 3000);
  const VocabPart part{.rows = rows, .columns = vocab + with.size(0, 8), .valid = vocab};
  void* logits = with.stored(rows * part.columns, 5);
  const std::int32_t* targets = with.integers(rows, vocab);
  float* losses = with.float_room(rows);
  const float* loss_scale = with.coin() ? with.floats_of(std::vector<float>{4}) : nullptr;
  return [=](DeviceKernels& kernels) { kernels.cross_entropy(losses, logits, targets, part, 0.25F, loss_scale); };
}

/// Two ranks, the last of which has padding behind its tokens.
CaseCall cross_entropy_in_parts(KernelOperands& with) {
  const std::int64_t rows = with.size(1, 40), columns = with.size(2, 700), valid = with.size(1, columns);
  const VocabPart first{.rows = rows, .columns = columns, .first = 0, .valid = columns};
  const VocabPart last{.rows = rows, .columns = columns, .first = columns, .valid = valid};
  void *logits = with.stored(rows * columns, 5), *last_logits = with.stored(rows * columns, 5);
  const std::int32_t* targets = with.integers(rows, columns + valid);
  float *parts = with.float_room(2 * 3 * rows), *losses = with.float_room(rows), *last_losses = with.float_room(rows);
  return [=](DeviceKernels& kernels) {
    kernels.cross_entropy_parts(parts, logits, targets, first);
    kernels.cross_entropy_parts(parts + 3 * rows, last_logits, targets, last);
    kernels.cross_entropy_from_parts(losses, logits, parts, 2, targets, first, 0.5F, nullptr);
    kernels.cross_entropy_from_parts(last_losses, last_logits, parts, 2, targets, last, 0.5F, nullptr);
  };
}

}  // namespace

void append_layer_cases(std::vector<KernelCase>& cases) {
  cases.insert(cases.end(), {{"copies, zeros and sums", copies},
                             {"columns", columns},
                             {"a product", product},
                             {"a product for the input's gradient", product_of_input_grad},
                             {"a product for the weights' gradient", product_of_weight_grad},
                             {"a product with a bias", product_with_bias},
                             {"a product with GELU", product_with_gelu},
                             {"a product with a bias's gradient", product_with_bias_sums},
                             {"norm", norm_forward},
                             {"norm's gradient", norm_backward},
                             {"activation", activation},
                             {"biases and residuals", biases},
                             {"rotary positions", rotary},
                             {"dropout", dropout},
                             {"embedding", embedding},
                             {"cross-entropy", cross_entropy},
                             {"cross-entropy over a vocabulary in parts", cross_entropy_in_parts}});
}

}  // namespace plumb::test
