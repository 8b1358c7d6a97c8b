#include "executor/measure/device/device_kernel_calls.h"

#include <cassert>

#include "executor/measure/device/expert_kernel_calls.h"
#include "executor/measure/device/image_kernel_calls.h"
#include "executor/measure/device/update_kernel_calls.h"
#include "kernels/counter_random.h"

namespace plumb { inline namespace executor {
namespace {

constexpr std::int64_t kOperandAlignment = 256;
constexpr int kMostOperands = 12;  // operands of one kernel at most

void enqueue_gemm(DeviceKernels& kernels, const std::vector<std::int64_t>& shape, DeviceOperands& with) {
  const GemmSize size{shape[0], shape[1], shape[2]};
  const std::byte *left = with.stored(size.m * size.k), *right = with.stored(size.n * size.k);
  const auto bias = [&](std::int64_t elements) {
    return DeviceBias{.values = with.floats(elements), .stored = with.stored(elements)};
  };
  switch (static_cast<GemmForm>(shape[4])) {
    case GemmForm::kForward:
      return kernels.linear_forward(with.stored(size.m * size.n), left, right, size);
    case GemmForm::kInputGrad:
      return kernels.linear_input_grad(with.stored(size.m * size.n), left, right, size);
    case GemmForm::kWeightGrad:
      return kernels.linear_weight_grad(with.floats(size.m * size.n), left, right, size);
    case GemmForm::kForwardBias:
      return kernels.linear_bias_forward(with.stored(size.m * size.n), left, right, bias(size.n), size);
    case GemmForm::kForwardGelu:
      return kernels.linear_gelu_forward(with.stored(size.m * size.n), with.stored(size.m * size.n), left, right,
                                         bias(size.n), size);
    case GemmForm::kWeightGradBias:
      return kernels.linear_bias_weight_grad(with.floats(size.m * size.n), with.floats(size.m), left, right, size);
  }
}

void enqueue_attention(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  const std::vector<std::int64_t>& shape = call.shape;
  const AttentionSize size{shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], {}};
  const std::int64_t tokens = size.batch * size.sequence, query = size.heads * size.head_size;
  const std::int64_t width = query + 2 * size.kv_heads * size.head_size;
  const AttentionOperands of{.qkv = with.stored(tokens * width), .block = block_of_whole(size)};
  if (call.kind == KernelKind::kAttentionForward)
    return kernels.attention_forward(with.stored(tokens * query), nullptr, with.floats(tokens * size.heads), of);
  kernels.attention_backward(with.stored(tokens * width), nullptr, nullptr, with.floats(tokens * size.heads),
                             with.stored(tokens * query), with.stored(tokens * query), with.floats(tokens * size.heads),
                             of);
}

void enqueue_norm(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  const NormSize size{call.shape[0], call.shape[1]};
  const bool has_bias = (call.shape[2] & 1) != 0, has_residual = (call.shape[2] & 2) != 0;
  const std::int64_t area = size.rows * size.columns;
  const DeviceNorm norm{.gain = with.floats(size.columns),
                        .bias = has_bias ? with.floats(size.columns) : nullptr,
                        .mean = has_bias ? with.floats(size.rows) : nullptr,
                        .rstd = with.floats(size.rows)};
  if (call.kind == KernelKind::kNormForward)
    return kernels.norm_forward(with.stored(area), has_residual ? with.stored(area) : nullptr, with.stored(area),
                                has_residual ? with.stored(area) : nullptr, norm, size, 1e-5F);
  kernels.norm_backward(with.stored(area), with.floats(size.columns), has_bias ? with.floats(size.columns) : nullptr,
                        with.stored(area), with.stored(area), with.stored(area), norm, size);
}

void enqueue_activation(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  const MlpActivation of{.rows = call.shape[0], .columns = call.shape[1], .gated = call.shape[2] != 0};
  std::byte* up = with.stored(of.elements() * (of.gated ? 2 : 1));
  if (call.kind == KernelKind::kActivationForward)
    return kernels.activation_forward(with.stored(of.elements()), up, of);
  kernels.activation_backward(up, with.stored(of.elements()), of);
}

void enqueue_embedding(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  const std::int64_t rows = call.shape[0], columns = call.shape[1];
  const bool positions = call.shape[2] != 0;
  const EmbeddingSize size{.tokens = rows, .sequence = rows, .columns = columns};
  if (call.kind == KernelKind::kEmbeddingForward)
    return kernels.embedding_forward(with.stored(rows * columns), with.integers(),
                                     with.stored(kMeasuredVocab * columns),
                                     positions ? with.stored(rows * columns) : nullptr, size);
  kernels.embedding_backward(with.floats(kMeasuredVocab * columns), positions ? with.floats(rows * columns) : nullptr,
                             with.stored(rows * columns), with.integers(), size);
}

}  // namespace

std::byte* DeviceOperands::bytes(std::int64_t count) {
  assert(count <= bytes_);
  if (position_ + count > bytes_) position_ = 0;
  std::byte* slice = memory_ + position_;
  position_ += (count + kOperandAlignment - 1) / kOperandAlignment * kOperandAlignment;
  return slice;
}

std::int64_t operand_integer_count(const KernelCall& call) {
  switch (call.kind) {
    case KernelKind::kEmbeddingForward:
    case KernelKind::kEmbeddingBackward:
    case KernelKind::kCrossEntropy:
      return call.shape[0];
    default:
      if (is_image_kernel(call.kind)) return image_integer_count(call);
      return is_expert_kernel(call.kind) ? expert_integer_count(call) : 0;
  }
}

std::vector<std::int32_t> operand_integers(const KernelCall& call) {
  if (is_image_kernel(call.kind)) return image_integers(call);
  if (is_expert_kernel(call.kind)) return expert_integers(call);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(operand_integer_count(call)));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int32_t>(mix_bits(i) % static_cast<std::uint64_t>(kMeasuredVocab));
  return tokens;
}

std::int64_t operand_bytes(const KernelCall& call, std::int64_t element_bytes) {
  const std::vector<std::int64_t>& s = call.shape;
  const std::int64_t room = kMostOperands * kOperandAlignment;
  if (is_image_kernel(call.kind)) return image_operand_bytes(call, element_bytes) + room;
  if (is_expert_kernel(call.kind)) return expert_operand_bytes(call, element_bytes) + room;
  if (is_update_kernel(call.kind)) return update_operand_bytes(call, element_bytes) + room;
  switch (call.kind) {
    case KernelKind::kGemm:
      return (s[0] * s[2] + s[1] * s[2]) * element_bytes + s[0] * s[1] * (4 + element_bytes) +
             (s[0] + s[1]) * (4 + element_bytes) + room;
    case KernelKind::kAttentionForward:
    case KernelKind::kAttentionBackward:
      return s[0] * s[1] * ((2 * (s[2] + 2 * s[3]) + 2 * s[2]) * s[4] * element_bytes + 2 * s[2] * 4) + room;
    case KernelKind::kEmbeddingForward:
    case KernelKind::kEmbeddingBackward:
      return (2 * s[0] + kMeasuredVocab) * s[1] * 4 + s[0] * s[1] * element_bytes + room;
    case KernelKind::kRotary:
      return s[0] * (s[1] * s[2] * element_bytes + s[2] * 4) + room;
    case KernelKind::kCopy:
      return 2 * s[0] * element_bytes + room;
    default:  // [rows, columns], several of each
      return s[0] * s[1] * 4 * element_bytes + (s[0] + s[1]) * 4 * 4 + room;
  }
}

void enqueue_kernel(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  if (is_image_kernel(call.kind)) return enqueue_image_kernel(kernels, call, with);
  if (is_expert_kernel(call.kind)) return enqueue_expert_kernel(kernels, call, with);
  if (is_update_kernel(call.kind)) return enqueue_update_kernel(kernels, call, with);
  const std::vector<std::int64_t>& s = call.shape;
  switch (call.kind) {
    case KernelKind::kGemm:
      return enqueue_gemm(kernels, s, with);
    case KernelKind::kAttentionForward:
    case KernelKind::kAttentionBackward:
      return enqueue_attention(kernels, call, with);
    case KernelKind::kNormForward:
    case KernelKind::kNormBackward:
      return enqueue_norm(kernels, call, with);
    case KernelKind::kActivationForward:
    case KernelKind::kActivationBackward:
      return enqueue_activation(kernels, call, with);
    case KernelKind::kBiasForward:
      return kernels.bias_forward(with.stored(s[0] * s[1]), with.floats(s[1]), s[0], s[1]);
    case KernelKind::kBiasBackward:
      return kernels.bias_backward(with.floats(s[1]), with.stored(s[0] * s[1]), s[0], s[1]);
    case KernelKind::kRotary:
      return kernels.rotary(with.stored(s[0] * s[1] * s[2]), with.floats(s[0] * s[2]),
                            {.tokens = s[0],
                             .sequence = s[0],
                             .heads = s[1],
                             .head_size = s[2],
                             .row_width = s[1] * s[2],
                             .rotary_size = s[2]},
                            RotaryDirection::kForward);
    case KernelKind::kResidualAdd:
      return kernels.residual_add(with.stored(s[0] * s[1]), with.stored(s[0] * s[1]), with.stored(s[0] * s[1]), nullptr,
                                  s[0], s[1]);
    case KernelKind::kEmbeddingForward:
    case KernelKind::kEmbeddingBackward:
      return enqueue_embedding(kernels, call, with);
    case KernelKind::kCrossEntropy:
      return kernels.cross_entropy(with.floats(s[0]), with.stored(s[0] * s[1]), with.integers(),
                                   {.rows = s[0], .columns = s[1], .valid = s[1]}, 1, nullptr);
    case KernelKind::kCopy:
      return kernels.copy(with.stored(s[0]), with.stored(s[0]), s[0] * with.element_bytes());
    default:
      return;
  }
}

}}  // namespace plumb::executor
