// The kernels, and their sizes, that a calibration of a device measures.

#include <array>
#include <initializer_list>
#include <utility>

#include "executor/measure/device/device_kernel_calls.h"
#include "executor/measure/device/measure_device.h"

namespace plumb { inline namespace executor {
namespace {

/// Adds a mixture's kernels with `rows` rows for each expert, `hidden` channels outside and `ffn` inside, and a router
/// that picks two experts.
void add_experts(std::vector<KernelCall>& calls, std::int64_t rows, std::int64_t experts, std::int64_t hidden,
                 std::int64_t ffn) {
  const auto add = [&](KernelKind kind, std::vector<std::int64_t> shape, GemmForm form) {
    shape.push_back(static_cast<std::int64_t>(form));
    calls.push_back(kernel_call(kind, std::move(shape)));
  };
  const std::int64_t picks = rows * experts, tokens = picks / 2;
  add(KernelKind::kExpertProducts, {rows, ffn, hidden, experts}, GemmForm::kForward);
  add(KernelKind::kExpertProducts, {rows, ffn, hidden, experts}, GemmForm::kInputGrad);
  add(KernelKind::kExpertProducts, {hidden, ffn, rows, experts}, GemmForm::kWeightGrad);
  for (const GemmForm form : {GemmForm::kForward, GemmForm::kInputGrad, GemmForm::kWeightGrad})
    add(KernelKind::kRouterProduct, {tokens, experts, hidden}, form);
  calls.push_back(kernel_call(KernelKind::kRouter, {tokens, experts, 2}));
  calls.push_back(kernel_call(KernelKind::kCopyRows, {picks, hidden}));
  calls.push_back(kernel_call(KernelKind::kWeighPicks, {picks, ffn, hidden}));
}

/// Adds updates of a matrix by every optimizer, and of a vector by Adafactor.
void add_updates(std::vector<KernelCall>& calls, std::int64_t rows, std::int64_t columns) {
  for (const KernelKind kind : {KernelKind::kAdamW, KernelKind::kAdamW8Bit, KernelKind::kSgd, KernelKind::kLion})
    calls.push_back(kernel_call(kind, {rows * columns}));
  calls.push_back(kernel_call(KernelKind::kAdafactor, {1, rows, columns}));
  calls.push_back(kernel_call(KernelKind::kAdafactor, {1, 0, columns}));
}

/// Adds kernels of models that a CPU could train too, and of small last micro-batches. Their launches take longer than
/// their work.
void add_small_kernels(std::vector<KernelCall>& calls) {
  const auto add = [&](KernelKind kind, std::vector<std::int64_t> shape) {
    calls.push_back(kernel_call(kind, std::move(shape)));
  };
  constexpr std::int64_t kTokens = 128;
  for (const std::int64_t out : {128, 512})
    for (const std::int64_t in : {128, 512})
      for (const GemmForm form :
           {GemmForm::kForward, GemmForm::kInputGrad, GemmForm::kForwardBias, GemmForm::kForwardGelu})
        add(KernelKind::kGemm, {kTokens, out, in, 1, static_cast<std::int64_t>(form)});
  for (const std::int64_t out : {128, 512})
    for (const GemmForm form : {GemmForm::kWeightGrad, GemmForm::kWeightGradBias})
      add(KernelKind::kGemm, {out, 128, kTokens, 1, static_cast<std::int64_t>(form)});
  add_experts(calls, kTokens / 4, 4, 128, 64);
  add_updates(calls, 32, 128);
  for (const std::int64_t columns : {128, 512}) {
    for (const std::int64_t variant : {2, 3}) add(KernelKind::kNormForward, {kTokens, columns, variant});
    add(KernelKind::kCopy, {kTokens * columns});
    for (const std::int64_t variant : {0, 1})
      for (const KernelKind kind :
           {KernelKind::kNormForward, KernelKind::kNormBackward, KernelKind::kActivationForward,
            KernelKind::kActivationBackward, KernelKind::kEmbeddingForward, KernelKind::kEmbeddingBackward})
        add(kind, {kTokens, columns, variant});
    for (const KernelKind kind : {KernelKind::kBiasForward, KernelKind::kBiasBackward, KernelKind::kResidualAdd})
      add(kind, {kTokens, columns});
  }
  for (const KernelKind kind : {KernelKind::kAttentionForward, KernelKind::kAttentionBackward})
    add(kind, {1, kTokens, 4, 4, 32, 0});
  add(KernelKind::kRotary, {kTokens, 4, 32});
  add(KernelKind::kCrossEntropy, {kTokens, kMeasuredVocab});
  for (const KernelKind kind :
       {KernelKind::kReluForward, KernelKind::kReluBackward, KernelKind::kDropout, KernelKind::kSquaredError})
    add(kind, {kTokens, 64});
  for (const KernelKind kind :
       {KernelKind::kConvolutionForward, KernelKind::kConvolutionInputGrad, KernelKind::kConvolutionWeightGrad})
    add(kind, {1, 8, 8, 8, 16, 3, 1, 1, 1});
  for (const std::int64_t average : {0, 1})
    for (const KernelKind kind : {KernelKind::kPoolingForward, KernelKind::kPoolingBackward})
      add(kind, {1, 8, 8, 16, 2, 2, average});
}

}  // namespace

std::vector<KernelCall> device_kernel_ladder() {
  std::vector<KernelCall> calls;
  const auto add = [&](KernelKind kind, std::vector<std::int64_t> shape) {
    calls.push_back(kernel_call(kind, std::move(shape)));
  };
  const auto form = [](GemmForm f) { return static_cast<std::int64_t>(f); };
  add_small_kernels(calls);
  for (const std::int64_t tokens : {512, 2048, 8192}) {
    for (const std::int64_t out : {1024, 4096, 16384})
      for (const std::int64_t in : {1024, 4096, 16384}) {
        add(KernelKind::kGemm, {tokens, out, in, 1, form(GemmForm::kForward)});
        add(KernelKind::kGemm, {tokens, in, out, 1, form(GemmForm::kInputGrad)});
        add(KernelKind::kGemm, {out, in, tokens, 1, form(GemmForm::kWeightGrad)});
        if (out == in && out > 4096) continue;  // the MLP of no model
        add(KernelKind::kGemm, {tokens, out, in, 1, form(GemmForm::kForwardBias)});
        add(KernelKind::kGemm, {tokens, out, in, 1, form(GemmForm::kForwardGelu)});
        add(KernelKind::kGemm, {out, in, tokens, 1, form(GemmForm::kWeightGradBias)});
      }
    for (const std::int64_t columns : {1024, 4096, 16384}) {
      for (const std::int64_t variant : {2, 3}) add(KernelKind::kNormForward, {tokens, columns, variant});
      add(KernelKind::kCopy, {tokens * columns});
      for (const std::int64_t variant : {0, 1})
        for (const KernelKind kind :
             {KernelKind::kNormForward, KernelKind::kNormBackward, KernelKind::kActivationForward,
              KernelKind::kActivationBackward, KernelKind::kEmbeddingForward, KernelKind::kEmbeddingBackward})
          add(kind, {tokens, columns, variant});
      for (const KernelKind kind : {KernelKind::kBiasForward, KernelKind::kBiasBackward, KernelKind::kResidualAdd})
        add(kind, {tokens, columns});
    }
    for (const std::int64_t heads : {8, 40}) add(KernelKind::kRotary, {tokens, heads, 128});
    for (const std::int64_t vocab : {8192, 32768, 131072}) add(KernelKind::kCrossEntropy, {tokens, vocab});
    for (const KernelKind kind :
         {KernelKind::kReluForward, KernelKind::kReluBackward, KernelKind::kDropout, KernelKind::kSquaredError})
      add(kind, {tokens, 4096});
  }
  for (const KernelKind kind : {KernelKind::kAttentionForward, KernelKind::kAttentionBackward})
    for (const std::int64_t sequence : {512, 1024, 2048, 4096, 8192}) {
      add(kind, {1, sequence, 16, 16, 64, 0});
      add(kind, {1, sequence, 32, 8, 128, 0});
    }
  for (const std::int64_t rows : {64, 4096, 65536}) add_updates(calls, rows, rows > 64 ? 4096 : 1024);
  for (const std::int64_t tokens : {2048, 8192}) {
    add_experts(calls, tokens / 4, 8, 4096, 14336);  // like Mixtral's
    add_experts(calls, tokens / 8, 64, 2048, 1408);  // like DeepSeek's
  }
  // 32 images at layers of AlexNet, VGG and ResNet: pixels, channels, filters, kernel, stride, padding, groups.
  for (const auto& s : std::initializer_list<std::array<std::int64_t, 7>>{{224, 3, 64, 3, 1, 1, 1},
                                                                          {224, 3, 96, 11, 4, 2, 1},
                                                                          {56, 128, 256, 3, 1, 1, 1},
                                                                          {28, 256, 512, 3, 1, 1, 1},
                                                                          {27, 96, 256, 5, 1, 2, 2},
                                                                          {14, 1024, 256, 1, 1, 0, 1},
                                                                          {14, 512, 512, 3, 1, 1, 1}})
    for (const KernelKind kind :
         {KernelKind::kConvolutionForward, KernelKind::kConvolutionInputGrad, KernelKind::kConvolutionWeightGrad})
      add(kind, {32, s[0], s[0], s[1], s[2], s[3], s[4], s[5], s[6]});
  for (const auto& s : std::initializer_list<std::array<std::int64_t, 4>>{{55, 96, 3, 2}, {224, 64, 2, 2}})
    for (const std::int64_t average : {0, 1})
      for (const KernelKind kind : {KernelKind::kPoolingForward, KernelKind::kPoolingBackward})
        add(kind, {32, s[0], s[0], s[1], s[2], s[3], average});
  return calls;
}

}}  // namespace plumb::executor
