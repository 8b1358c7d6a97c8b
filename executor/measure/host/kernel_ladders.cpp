#include <initializer_list>

#include "executor/measure/host/measure_kernels.h"

namespace plumb { inline namespace executor {
namespace {

constexpr std::initializer_list<std::int64_t> kTokens = {32, 128, 512, 2048};
constexpr std::initializer_list<std::int64_t> kChannels = {64, 256, 1024, 4096};

/// Convolutions of one image in AlexNet or VGG: {height, width, channels, filters, kernel, stride, padding, groups}.
constexpr std::initializer_list<std::initializer_list<std::int64_t>> kConvolutions = {
    {14, 14, 32, 32, 3, 1, 1, 1},   {27, 27, 96, 256, 5, 1, 2, 2},  {13, 13, 256, 384, 3, 1, 1, 1},
    {224, 224, 3, 96, 11, 4, 2, 1}, {56, 56, 128, 256, 3, 1, 1, 1}, {28, 28, 256, 512, 3, 1, 1, 1},
    {14, 14, 512, 512, 3, 1, 1, 1}, {224, 224, 3, 64, 3, 1, 1, 1}};

/// Poolings of one image: {height, width, channels, kernel, stride}.
constexpr std::initializer_list<std::initializer_list<std::int64_t>> kPoolings = {
    {13, 13, 256, 3, 2}, {55, 55, 96, 3, 2}, {28, 28, 512, 2, 2}, {224, 224, 64, 2, 2}};

void append_image_calls(std::vector<KernelCall>& calls) {
  for (const auto& sizes : kConvolutions)
    for (const KernelKind kind :
         {KernelKind::kConvolutionForward, KernelKind::kConvolutionInputGrad, KernelKind::kConvolutionWeightGrad}) {
      std::vector<std::int64_t> shape = {1};
      shape.insert(shape.end(), sizes);
      calls.push_back(kernel_call(kind, shape));
    }
  for (const auto& sizes : kPoolings)
    for (const std::int64_t average : {0, 1})
      for (const KernelKind kind : {KernelKind::kPoolingForward, KernelKind::kPoolingBackward}) {
        std::vector<std::int64_t> shape = {1};
        shape.insert(shape.end(), sizes);
        shape.push_back(average);
        calls.push_back(kernel_call(kind, shape));
      }
}

}  // namespace

std::vector<KernelCall> gemm_ladder() {
  std::vector<KernelCall> calls;
  const auto add = [&](std::int64_t m, std::int64_t n, std::int64_t k, GemmForm form) {
    calls.push_back(kernel_call(KernelKind::kGemm, {m, n, k, 1, static_cast<std::int64_t>(form)}));
  };
  for (const std::int64_t tokens : kTokens)
    for (const std::int64_t out : kChannels)
      for (const std::int64_t in : kChannels) {
        add(tokens, out, in, GemmForm::kForward);
        add(tokens, in, out, GemmForm::kInputGrad);
        add(out, in, tokens, GemmForm::kWeightGrad);
      }
  return calls;
}

std::vector<KernelCall> attention_ladder() {
  struct Heads {
    std::int64_t heads, kv_heads, head_size;
  };
  std::vector<KernelCall> calls;
  for (const KernelKind kind : {KernelKind::kAttentionForward, KernelKind::kAttentionBackward})
    for (const Heads& heads : {Heads{4, 4, 16}, Heads{4, 4, 32}, Heads{4, 4, 64}, Heads{8, 2, 64}, Heads{8, 8, 128}}) {
      for (const std::int64_t sequence : {32, 64, 128, 256, 512, 1024})
        calls.push_back(kernel_call(kind, {1, sequence, heads.heads, heads.kv_heads, heads.head_size, 0}));
      calls.push_back(kernel_call(kind, {4, 128, heads.heads, heads.kv_heads, heads.head_size, 0}));
      calls.push_back(kernel_call(kind, {1, 1024, heads.heads, heads.kv_heads, heads.head_size, 128}));
    }
  return calls;
}

std::vector<KernelCall> other_kernel_ladder() {
  std::vector<KernelCall> calls;
  for (const std::int64_t rows : kTokens)
    for (const std::int64_t columns : kChannels) {
      for (const std::int64_t variant : {0, 1})  // 1: layer norm, gated activation, embedding with positions
        for (const KernelKind kind :
             {KernelKind::kNormForward, KernelKind::kNormBackward, KernelKind::kActivationForward,
              KernelKind::kActivationBackward, KernelKind::kEmbeddingForward, KernelKind::kEmbeddingBackward})
          calls.push_back(kernel_call(kind, {rows, columns, variant}));
      for (const KernelKind kind : {KernelKind::kBiasForward, KernelKind::kBiasBackward, KernelKind::kResidualAdd})
        calls.push_back(kernel_call(kind, {rows, columns}));
    }
  for (const std::int64_t rows : kTokens) {
    for (const std::int64_t vocab : {256, 1024, 4096, 16384})
      calls.push_back(kernel_call(KernelKind::kCrossEntropy, {rows, vocab}));
    for (const std::int64_t heads : {4, 40})
      for (const std::int64_t size : {32, 128}) calls.push_back(kernel_call(KernelKind::kRotary, {rows, heads, size}));
  }
  for (const std::int64_t rows : kTokens)
    for (const std::int64_t columns : kChannels)
      for (const KernelKind kind : {KernelKind::kReluForward, KernelKind::kReluBackward, KernelKind::kDropout,
                                    KernelKind::kSquaredError, KernelKind::kCopyRows})
        calls.push_back(kernel_call(kind, {rows, columns}));
  for (const std::int64_t rows : kTokens)
    for (const std::int64_t experts : {8, 128})
      for (const std::int64_t picks : {2, 8}) calls.push_back(kernel_call(KernelKind::kRouter, {rows, experts, picks}));
  for (const std::int64_t elements : {64, 1024, 16384, 262144, 4194304})
    calls.push_back(kernel_call(KernelKind::kAdamW, {elements}));
  append_image_calls(calls);
  return calls;
}

}}  // namespace plumb::executor
