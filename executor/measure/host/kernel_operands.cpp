#include "executor/measure/host/kernel_operands.h"

#include <algorithm>
#include <cmath>

#include "executor/kernels/kernel_set.h"
#include "kernels/counter_random.h"
#include "kernels/cpu/images/image_sizes.h"
#include "kernels/cpu/relu.h"

namespace plumb { inline namespace executor {
namespace {

constexpr std::size_t kRoundElements = 8 << 20;    // cold memory goes round in 32 MiB
constexpr std::size_t kPatternElements = 1 << 16;  // period of the values
constexpr std::int64_t kVocab = 1024;              // vocabulary of embeddings; cross-entropy's targets stay below 64

void call_gemm(const std::vector<std::int64_t>& shape, KernelOperands& with) {
  const GemmSize size{shape[0], shape[1], shape[2]};
  const auto form = static_cast<GemmForm>(shape[4]);
  const float* made = with.hot.next(size.m * size.k);   // x, or dy
  const float* kept = with.cold.next(size.n * size.k);  // W, or x
  float* result = (form == GemmForm::kWeightGrad ? with.cold : with.hot).next(size.m * size.n);
  switch (form) {
    case GemmForm::kForward:
      return linear_forward(result, made, kept, size);
    case GemmForm::kInputGrad:
      return linear_input_grad(result, made, kept, size);
    case GemmForm::kWeightGrad:
    default:  // fused forms occur on devices only
      return linear_weight_grad(result, made, kept, size);
  }
}

void call_attention(const KernelCall& call, KernelOperands& with) {
  const std::vector<std::int64_t>& shape = call.shape;
  const AttentionSize size{shape[0], shape[1], shape[2], shape[3], shape[4], shape[5]};
  const std::int64_t tokens = size.batch * size.sequence, query = size.heads * size.head_size;
  const std::int64_t qkv = query + 2 * size.kv_heads * size.head_size;
  with.scratch.resize(static_cast<std::size_t>(attention_scratch_elements(size)));
  if (call.kind == KernelKind::kAttentionForward)
    return attention_forward(with.hot.next(tokens * query), with.hot.next(tokens * size.heads),
                             with.hot.next(tokens * qkv), size, with.scratch.data());
  attention_backward(with.hot.next(tokens * qkv), with.hot.next(tokens * query), with.cold.next(tokens * qkv),
                     with.cold.next(tokens * query), with.cold.next(tokens * size.heads), size, with.scratch.data());
}

void call_norm(const KernelCall& call, KernelOperands& with) {
  const NormSize size{call.shape[0], call.shape[1]};
  const NormKind kind = call.shape[2] != 0 ? NormKind::kLayerNorm : NormKind::kRmsNorm;
  const std::int64_t area = size.rows * size.columns;
  const NormParameters parameters{with.cold.next(size.columns), with.cold.next(size.columns)};
  const CpuKernelSet kernels;
  if (call.kind == KernelKind::kNormForward)
    return kernels.norm_forward(kind, with.hot.next(area), {with.hot.next(size.rows), with.hot.next(size.rows)},
                                with.hot.next(area), parameters, size, 1e-5);
  kernels.norm_backward(kind, with.hot.next(area), {with.cold.next(size.columns), with.cold.next(size.columns)},
                        with.hot.next(area), with.hot.next(area), with.cold.next(area),
                        {with.cold.next(size.rows), with.cold.next(size.rows)}, parameters, size);
}

void call_activation(const KernelCall& call, KernelOperands& with) {
  const MlpActivation of{.rows = call.shape[0], .columns = call.shape[1], .gated = call.shape[2] != 0};
  const std::int64_t before = of.gated ? 2 * of.elements() : of.elements();
  const CpuKernelSet kernels;
  if (call.kind == KernelKind::kActivationForward)
    return kernels.activation_forward(with.hot.next(of.elements()), with.hot.next(before), of);
  kernels.activation_backward(with.cold.next(before), with.hot.next(of.elements()), of);
}

void call_embedding(const KernelCall& call, KernelOperands& with) {
  const std::int64_t rows = call.shape[0], columns = call.shape[1], area = rows * columns;
  const bool positions = call.shape[2] != 0;
  const EmbeddingSize size{.tokens = rows, .sequence = rows, .columns = columns};
  const CpuKernelSet kernels;
  if (call.kind == KernelKind::kEmbeddingForward)
    return kernels.embedding_forward(with.hot.next(area), with.tokens.data(), with.cold.next(kVocab * columns),
                                     positions ? with.cold.next(area) : nullptr, size);
  kernels.embedding_backward(with.cold.next(kVocab * columns), positions ? with.cold.next(area) : nullptr,
                             with.hot.next(area), with.tokens.data(), size);
}

void call_convolution(const KernelCall& call, KernelOperands& with) {
  const ConvolutionSize size = convolution_size(call.shape);
  const std::int64_t input = size.images * size.height * size.width * size.channels;
  const std::int64_t output = size.images * size.filters *
                              windows_in(size.height, size.kernel, size.stride, size.padding) *
                              windows_in(size.width, size.kernel, size.stride, size.padding);
  const std::int64_t filters = size.filters * size.kernel * size.kernel * size.channels / size.groups;
  with.scratch.resize(static_cast<std::size_t>(convolution_scratch_elements(size)));
  const CpuKernelSet kernels;
  if (call.kind == KernelKind::kConvolutionForward)
    return kernels.convolution_forward(with.hot.next(output), with.hot.next(input), with.cold.next(filters), size,
                                       with.scratch.data());
  if (call.kind == KernelKind::kConvolutionInputGrad)
    return kernels.convolution_input_grad(with.hot.next(input), with.hot.next(output), with.cold.next(filters), size,
                                          with.scratch.data());
  kernels.convolution_weight_grad(with.cold.next(filters), with.hot.next(output), with.cold.next(input), size,
                                  with.scratch.data());
}

void call_pooling(const KernelCall& call, KernelOperands& with) {
  const PoolingSize size = pooling_size(call.shape);
  const PoolingKind kind = call.shape[6] != 0 ? PoolingKind::kAverage : PoolingKind::kMax;
  const std::int64_t input = size.images * size.height * size.width * size.channels;
  const std::int64_t output = size.images * size.channels * windows_in(size.height, size.kernel, size.stride) *
                              windows_in(size.width, size.kernel, size.stride);
  const CpuKernelSet kernels;
  with.places.assign(static_cast<std::size_t>(output), 0);
  if (call.kind == KernelKind::kPoolingForward)
    return kernels.pooling_forward(kind, with.hot.next(output), with.places.data(), with.hot.next(input), size);
  kernels.pooling_backward(kind, with.hot.next(input), with.hot.next(output), with.places.data(), size);
}

void call_other(const KernelCall& call, KernelOperands& with) {
  const CpuKernelSet kernels;
  const std::int64_t rows = call.shape[0], columns = call.shape.size() > 1 ? call.shape[1] : 1, area = rows * columns;
  switch (call.kind) {
    case KernelKind::kBiasForward:
      return kernels.bias_forward(with.hot.next(area), with.cold.next(columns), rows, columns);
    case KernelKind::kBiasBackward:
      return kernels.bias_backward(with.cold.next(columns), with.hot.next(area), rows, columns);
    case KernelKind::kResidualAdd:
      return kernels.residual_add(with.hot.next(area), with.hot.next(area), with.hot.next(area), rows, columns);
    case KernelKind::kReluForward:
    case KernelKind::kReluBackward:
      with.mask.resize(static_cast<std::size_t>(relu_mask_words(area)), 0xAAAAAAAAU);
      if (call.kind == KernelKind::kReluForward)
        return kernels.relu_forward(with.hot.next(area), with.mask.data(), rows, columns);
      return kernels.relu_backward(with.hot.next(area), with.mask.data(), rows, columns);
    case KernelKind::kDropout: {
      float* tensor = with.hot.next(area);
      return kernels.dropout(tensor, tensor, {}, {.count = rows, .columns = columns}, 0.1);
    }
    case KernelKind::kRouter:
      with.places.resize(static_cast<std::size_t>(rows * call.shape[2]));
      return kernels.router_forward(with.hot.next(area), with.places.data(), {rows, columns, call.shape[2]});
    case KernelKind::kCopyRows:
      while (std::ssize(with.row_numbers) < rows)
        with.row_numbers.push_back(static_cast<std::int32_t>(with.row_numbers.size()));
      return kernels.place_rows(with.hot.next(area), with.hot.next(area), with.row_numbers.data(), {rows, 1, columns});
    case KernelKind::kSquaredError:
      kernels.squared_error(with.hot.next(area), with.cold.next(area), rows, columns, 1.0F / static_cast<float>(rows));
      return;
    case KernelKind::kCrossEntropy:
      kernels.cross_entropy(with.hot.next(area), with.targets.data(), rows, columns, 1.0F / static_cast<float>(rows));
      return;
    case KernelKind::kRotary: {
      const std::int64_t size = call.shape[2], width = columns * size;
      return kernels.rotary(with.hot.next(rows * width), with.rotary.data(), {rows, 512, columns, size, width, size},
                            RotaryDirection::kForward);
    }
    case KernelKind::kAdamW: {
      float* tensors = with.moments.next(4 * rows);
      return kernels.adamw_update(tensors, tensors + rows, tensors + 2 * rows, tensors + 3 * rows, rows, AdamW{}, 10);
    }
    default:
      return;
  }
}

}  // namespace

OperandMemory::OperandMemory(Use use, Values values) : use_(use), pattern_(kPatternElements) {
  for (std::size_t i = 0; i < kPatternElements; ++i) {
    const float value = static_cast<float>(mix_bits(i) >> 40) / 8388608.0F - 1.0F;
    pattern_[i] = values == Values::kPositive ? std::abs(value) : value;
  }
  add_block(use == Use::kCold ? kRoundElements : 1);
}

void OperandMemory::begin_call() {
  if (blocks_.size() > 1) {
    renew();
    blocks_.erase(blocks_.begin(), blocks_.end() - 1);
  }
  if (use_ == Use::kHot) position_ = 0;
}

float* OperandMemory::next(std::int64_t elements) {
  const auto count = static_cast<std::size_t>(elements);
  const bool ends = position_ + count > blocks_.back().size();
  if (blocks_.back().size() < 2 * count || (ends && use_ == Use::kHot)) add_block(2 * (position_ + count));
  if (position_ + count > blocks_.back().size()) position_ = 0;
  float* slice = blocks_.back().data() + position_;
  position_ += (count + 15) / 16 * 16;
  handed_.emplace_back(slice, count);
  return slice;
}

void OperandMemory::renew() {
  for (const auto& [slice, count] : handed_) fill(slice, count);
  handed_.clear();
}

void OperandMemory::add_block(std::size_t elements) {
  std::vector<float>& block = blocks_.emplace_back(elements);
  fill(block.data(), elements);
  position_ = 0;
}

void OperandMemory::fill(float* to, std::size_t elements) const {
  for (std::size_t done = 0; done < elements; done += kPatternElements)
    std::copy_n(pattern_.begin(), std::min(kPatternElements, elements - done), to + done);
}

KernelOperands::KernelOperands() {
  for (std::uint64_t i = 0; i < 4096; ++i) {
    tokens.push_back(static_cast<std::int32_t>(mix_bits(i) % kVocab));
    targets.push_back(static_cast<std::int32_t>(mix_bits(i) % 64));
  }
  rotary = rotary_table(512, 128, 10000.0);
}

void KernelOperands::renew() {
  hot.renew();
  cold.renew();
  moments.renew();
}

void call_kernel(const KernelCall& call, KernelOperands& with) {
  with.hot.begin_call();
  with.cold.begin_call();
  with.moments.begin_call();
  switch (call.kind) {
    case KernelKind::kGemm:
      return call_gemm(call.shape, with);
    case KernelKind::kAttentionForward:
    case KernelKind::kAttentionBackward:
      return call_attention(call, with);
    case KernelKind::kNormForward:
    case KernelKind::kNormBackward:
      return call_norm(call, with);
    case KernelKind::kActivationForward:
    case KernelKind::kActivationBackward:
      return call_activation(call, with);
    case KernelKind::kEmbeddingForward:
    case KernelKind::kEmbeddingBackward:
      return call_embedding(call, with);
    case KernelKind::kConvolutionForward:
    case KernelKind::kConvolutionInputGrad:
    case KernelKind::kConvolutionWeightGrad:
      return call_convolution(call, with);
    case KernelKind::kPoolingForward:
    case KernelKind::kPoolingBackward:
      return call_pooling(call, with);
    default:
      return call_other(call, with);
  }
}

}}  // namespace plumb::executor
