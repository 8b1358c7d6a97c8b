#include "executor/cpu/measure_kernels.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "executor/cpu/kernel_set.h"
#include "kernels/counter_random.h"
#include "kernels/cpu/relu.h"

namespace plumb {
namespace {

constexpr std::size_t kRoundElements = 8 << 20;  // 32 MiB go round
constexpr std::int64_t kVocab = 1024;            // of embeddings; cross-entropy's targets stay below 64
constexpr Seconds kShortestRun{20e-6};           // a thousand times the clock's grain
constexpr double kLargestPart = 0.1;             // of the time left that one call's repeats may take
constexpr int kLeastRepeats = 3;
constexpr int kMostRepeats = 25;

/// Memory that is handed out slice after slice. Slices of one call stay valid until the next call, which goes on behind
/// them and round and round (cold), or begins at the same place again (hot).
class Memory {
 public:
  enum class Use : std::uint8_t { kHot, kCold };
  explicit Memory(Use use) : use_(use) { add_block(use == Use::kCold ? kRoundElements : 1); }

  void begin_call() {
    if (blocks_.size() > 1) blocks_.erase(blocks_.begin(), blocks_.end() - 1);
    if (use_ == Use::kHot) position_ = 0;
  }

  float* next(std::int64_t elements) {
    const auto count = static_cast<std::size_t>(elements);
    const bool ends = position_ + count > blocks_.back().size();
    if (blocks_.back().size() < 2 * count || (ends && use_ == Use::kHot)) add_block(2 * (position_ + count));
    if (position_ + count > blocks_.back().size()) position_ = 0;
    float* slice = blocks_.back().data() + position_;
    position_ += (count + 15) / 16 * 16;
    return slice;
  }

 private:
  void add_block(std::size_t elements) {
    std::vector<float>& block = blocks_.emplace_back(elements);
    for (std::size_t i = 0; i < elements; ++i) block[i] = static_cast<float>(mix_bits(i) >> 40) / 8388608.0F - 1.0F;
    position_ = 0;
  }

  Use use_;
  std::vector<std::vector<float>> blocks_;
  std::size_t position_ = 0;  // in the last block
};

/// What one thread's kernels work on. As in a training step, what the kernel before has just made is still in the cache
/// (hot), in memory that has been used before; weights, their gradients and what the forward kept are not (cold).
struct Operands {
  Memory hot{Memory::Use::kHot};
  Memory cold{Memory::Use::kCold};
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
  std::vector<std::int32_t> places;
  std::vector<std::int32_t> row_numbers;  // 0, 1, ...
  std::vector<std::uint32_t> mask;
  std::vector<float> scratch;
  std::vector<float> rotary;

  Operands() {
    for (std::uint64_t i = 0; i < 4096; ++i) {
      tokens.push_back(static_cast<std::int32_t>(mix_bits(i) % kVocab));
      targets.push_back(static_cast<std::int32_t>(mix_bits(i) % 64));
    }
    rotary = rotary_table(512, 128, 10000.0);
  }
};

void call_gemm(const std::vector<std::int64_t>& shape, Operands& with) {
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
      return linear_weight_grad(result, made, kept, size);
  }
}

void call_attention(const KernelCall& call, Operands& with) {
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

void call_norm(const KernelCall& call, Operands& with) {
  const NormSize size{call.shape[0], call.shape[1]};
  const NormKind kind = call.shape[2] != 0 ? NormKind::kLayerNorm : NormKind::kRmsNorm;
  const std::int64_t area = size.rows * size.columns;
  const NormParameters parameters{with.cold.next(size.columns), with.cold.next(size.columns)};
  const CpuKernelSet kernels;
  if (call.kind == KernelKind::kNormForward)
    return kernels.norm_forward(kind, with.hot.next(area), with.hot.next(2 * size.rows), with.hot.next(area),
                                parameters, size, 1e-5);
  kernels.norm_backward(kind, with.hot.next(area), {with.cold.next(size.columns), with.cold.next(size.columns)},
                        with.hot.next(area), with.hot.next(area), with.cold.next(area), with.cold.next(2 * size.rows),
                        parameters, size);
}

void call_activation(const KernelCall& call, Operands& with) {
  const bool gated = call.shape[2] != 0;
  const std::int64_t rows = call.shape[0], columns = call.shape[1], width = gated ? 2 * columns : columns;
  const TransformerLayer layer{.ffn = columns, .mlp = gated ? MlpKind::kSwiglu : MlpKind::kGelu};
  const CpuKernelSet kernels;
  if (call.kind == KernelKind::kActivationForward)
    return kernels.activation_forward(layer, with.hot.next(rows * columns), with.hot.next(rows * width), rows);
  kernels.activation_backward(layer, with.cold.next(rows * width), with.hot.next(rows * columns), rows);
}

void call_embedding(const KernelCall& call, Operands& with) {
  const std::int64_t rows = call.shape[0], columns = call.shape[1], area = rows * columns;
  const bool positions = call.shape[2] != 0;
  const EmbeddingLayer layer{.vocab = kVocab, .hidden = columns};
  const LayerWork work{.microbatch = 1, .sequence = rows};
  const CpuKernelSet kernels;
  if (call.kind == KernelKind::kEmbeddingForward)
    return kernels.embedding_forward(with.hot.next(area), with.tokens.data(), with.cold.next(kVocab * columns),
                                     positions ? with.cold.next(area) : nullptr, layer, work);
  kernels.embedding_backward(with.cold.next(kVocab * columns), positions ? with.cold.next(area) : nullptr,
                             with.hot.next(area), with.tokens.data(), layer, work);
}

void call_convolution(const KernelCall& call, Operands& with) {
  const std::vector<std::int64_t>& shape = call.shape;
  const ConvolutionSize size{shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], shape[6], shape[7], shape[8]};
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

void call_pooling(const KernelCall& call, Operands& with) {
  const std::vector<std::int64_t>& shape = call.shape;
  const PoolingSize size{shape[0], shape[1], shape[2], shape[3], shape[4], shape[5]};
  const PoolingKind kind = shape[6] != 0 ? PoolingKind::kAverage : PoolingKind::kMax;
  const std::int64_t input = size.images * size.height * size.width * size.channels;
  const std::int64_t output = size.images * size.channels * windows_in(size.height, size.kernel, size.stride) *
                              windows_in(size.width, size.kernel, size.stride);
  const CpuKernelSet kernels;
  with.places.assign(static_cast<std::size_t>(output), 0);
  if (call.kind == KernelKind::kPoolingForward)
    return kernels.pooling_forward(kind, with.hot.next(output), with.places.data(), with.hot.next(input), size);
  kernels.pooling_backward(kind, with.hot.next(input), with.hot.next(output), with.places.data(), size);
}

void call_other(const KernelCall& call, Operands& with) {
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
      float* tensors = with.cold.next(4 * rows);
      return kernels.adamw_update(tensors, tensors + rows, tensors + 2 * rows, tensors + 3 * rows, rows, AdamW{}, 10);
    }
    default:
      return;
  }
}

void call_once(const KernelCall& call, Operands& with) {
  with.hot.begin_call();
  with.cold.begin_call();
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

Seconds time_run(const KernelCall& call, int calls, Operands& with) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call_once(call, with);
  return Seconds(std::chrono::steady_clock::now() - start) / calls;
}

struct Repeats {
  int repeats = 0;
  int calls = 1;  // of each
};

/// How often to repeat, and how many calls a repeat needs, so that all takes about `share`.
Repeats repeats_for(Seconds one_call, Seconds share) {
  const int calls = std::max(1, static_cast<int>(kShortestRun / one_call));
  const double fitting = share / (one_call * calls);
  return {std::clamp(static_cast<int>(fitting), kLeastRepeats, kMostRepeats), calls};
}

/// What calls of one kind are ordered and extrapolated by.
double work_of(const KernelCall& call) {
  return call.flops + call.elements_moved;
}

/// Each busy rank repeats the call in step with the others. Returns all times.
std::vector<Seconds> time_on_all(const KernelCall& call, const Repeats& plan,
                                 const std::vector<std::unique_ptr<Operands>>& operands) {
  const std::size_t ranks = operands.size();
  std::vector<std::vector<Seconds>> times(ranks);
  std::barrier<> together(static_cast<std::ptrdiff_t>(ranks));
  const auto work = [&](std::size_t rank) {
    for (int i = 0; i < plan.repeats; ++i) {
      together.arrive_and_wait();
      times[rank].push_back(time_run(call, plan.calls, *operands[rank]));
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t rank = 1; rank < ranks; ++rank) threads.emplace_back(work, rank);
  work(0);
  for (std::thread& thread : threads) thread.join();
  std::vector<Seconds> all;
  for (const auto& of_rank : times) all.insert(all.end(), of_rank.begin(), of_rank.end());
  return all;
}

}  // namespace

std::vector<KernelSample> measure_kernels(std::vector<KernelCall> calls, int busy_ranks, Seconds budget) {
  std::vector<std::unique_ptr<Operands>> operands;
  for (int rank = 0; rank < busy_ranks; ++rank) operands.push_back(std::make_unique<Operands>());
  std::ranges::stable_sort(calls, {}, work_of);
  std::array<double, kKernelKindCount> seconds_per_work{};  // of the kind's last call
  std::vector<KernelSample> samples;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const KernelCall& call = calls[i];
    const Seconds left = budget - Seconds(std::chrono::steady_clock::now() - start);
    const Seconds share = std::max(left, Seconds{0}) / static_cast<double>(calls.size() - i);
    double& rate = seconds_per_work[static_cast<std::size_t>(call.kind)];
    const Seconds needed = (1 + kLeastRepeats) * Seconds(rate * work_of(call));
    if (needed > std::max(share, left * kLargestPart)) continue;
    const Seconds warm = time_run(call, 1, *operands[0]);
    std::vector<Seconds> times = time_on_all(call, repeats_for(warm, share), operands);
    std::ranges::sort(times);
    const Seconds median = times[times.size() / 2];
    rate = median.count() / work_of(call);
    samples.push_back({.kernel = std::string(kernel_name(call.kind)),
                       .shape = call.shape,
                       .median = median,
                       .fastest = times.front(),
                       .slowest = times.back(),
                       .repeats = static_cast<int>(times.size()),
                       .busy_ranks = busy_ranks});
  }
  return samples;
}

}  // namespace plumb
