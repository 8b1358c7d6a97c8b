#include <initializer_list>

#include "executor/cpu/measure_kernels.h"

namespace plumb {
namespace {

constexpr std::initializer_list<std::int64_t> kTokens = {32, 128, 512, 2048};
constexpr std::initializer_list<std::int64_t> kChannels = {64, 256, 1024, 4096};

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
      for (const std::int64_t variant : {0, 1})  // layer norm, gated, with positions
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
  for (const std::int64_t elements : {64, 1024, 16384, 262144, 4194304})
    calls.push_back(kernel_call(KernelKind::kAdamW, {elements}));
  return calls;
}

}  // namespace plumb
