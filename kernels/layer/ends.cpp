#include "kernels/layer/kind_parts.h"

namespace plumb { inline namespace kernels {

std::vector<ParameterTensor> parameters_of(const EmbeddingLayer& layer, int tensor_parallel, ExpertDivision) {
  std::vector<ParameterTensor> tensors = {{"tokens.weight", {share(layer.vocab, tensor_parallel), layer.hidden}, 0}};
  if (layer.positions > 0) tensors.push_back({"positions.weight", {layer.positions, layer.hidden}});
  return tensors;
}

std::vector<KernelCall> kernels_of(const EmbeddingLayer& layer, const LayerWork& work, Pass pass) {
  const std::vector<std::int64_t> shape = {tokens_in(work), layer.hidden, layer.positions > 0 ? 1 : 0};
  std::vector<KernelCall> calls;
  const std::vector<std::int64_t> rows = {residual_tokens_of(work), layer.hidden};
  if (pass == Pass::kForward) calls.push_back(kernel_call(KernelKind::kEmbeddingForward, shape));
  if (pass != Pass::kInputGrad && layer.dropout > 0) calls.push_back(kernel_call(KernelKind::kDropout, rows));
  if (pass == Pass::kWeightGrad) calls.push_back(kernel_call(KernelKind::kEmbeddingBackward, shape));
  return calls;
}

std::vector<SavedTensor> saved_of(const EmbeddingLayer&, const LayerWork& work) {
  return {{.name = "tokens", .elements = tokens_in(work), .single_precision = true, .needed_by_weight_grad = true}};
}

std::int64_t workspace_of(const EmbeddingLayer&, const LayerWork&, Pass) {
  return 0;
}

std::int64_t input_of(const EmbeddingLayer&, const LayerWork&) {
  return 0;
}

std::int64_t output_of(const EmbeddingLayer& layer, const LayerWork& work) {
  return residual_tokens_of(work) * layer.hidden;
}

std::vector<ParameterTensor> parameters_of(const HeadLayer& layer, int tensor_parallel, ExpertDivision) {
  std::vector<ParameterTensor> tensors;
  append_norm(tensors, "norm", layer.norm, layer.hidden);
  tensors.push_back({"projection.weight", {share(layer.vocab, tensor_parallel), layer.hidden}, 0});
  return tensors;
}

std::vector<KernelCall> kernels_of(const HeadLayer& layer, const LayerWork& work, Pass pass) {
  const std::int64_t tokens = tokens_in(work), rows = residual_tokens_of(work), h = layer.hidden;
  const std::int64_t vocab = share(layer.vocab, work.tensor_parallel);
  if (pass == Pass::kForward)
    return {norm_call(KernelKind::kNormForward, rows, h, layer.norm), gemm_call(tokens, vocab, h, GemmForm::kForward),
            kernel_call(KernelKind::kCrossEntropy, {tokens, vocab})};
  if (pass == Pass::kInputGrad)
    return {gemm_call(tokens, h, vocab, GemmForm::kInputGrad),
            norm_call(KernelKind::kNormBackward, rows, h, layer.norm)};
  return {gemm_call(vocab, h, tokens, GemmForm::kWeightGrad)};
}

std::vector<SavedTensor> saved_of(const HeadLayer& layer, const LayerWork& work) {
  const std::int64_t tokens = tokens_in(work), rows = residual_tokens_of(work), stream = rows * layer.hidden;
  return {
      {.name = "input", .elements = stream, .needed_by_weight_grad = true},
      {.name = "norm statistics", .elements = rows * statistics_per_row(layer.norm), .single_precision = true},
      {.name = "norm output", .elements = stream, .needed_by_weight_grad = true},
      {.name = "logits", .elements = tokens * share(layer.vocab, work.tensor_parallel), .needed_by_weight_grad = true}};
}

std::int64_t workspace_of(const HeadLayer& layer, const LayerWork& work, Pass pass) {
  return pass == Pass::kInputGrad ? residual_tokens_of(work) * layer.hidden : 0;  // the norm output's gradient
}

std::int64_t input_of(const HeadLayer& layer, const LayerWork& work) {
  return residual_tokens_of(work) * layer.hidden;
}

std::int64_t output_of(const HeadLayer&, const LayerWork&) {
  return 0;
}

std::vector<ParameterTensor> parameters_of(const InputLayer&, int, ExpertDivision) {
  return {};
}

std::vector<KernelCall> kernels_of(const InputLayer&, const LayerWork&, Pass) {
  return {};
}

std::vector<SavedTensor> saved_of(const InputLayer&, const LayerWork&) {
  return {};
}

std::int64_t workspace_of(const InputLayer&, const LayerWork&, Pass) {
  return 0;
}

std::int64_t input_of(const InputLayer&, const LayerWork&) {
  return 0;
}

std::int64_t output_of(const InputLayer& layer, const LayerWork& work) {
  return tokens_in(work) * layer.height * layer.width * layer.channels;
}

std::vector<ParameterTensor> parameters_of(const LossLayer&, int, ExpertDivision) {
  return {};
}

std::vector<KernelCall> kernels_of(const LossLayer& layer, const LayerWork& work, Pass pass) {
  if (pass != Pass::kForward) return {};
  const bool classes = layer.loss == LossKind::kCrossEntropy;
  return {kernel_call(classes ? KernelKind::kCrossEntropy : KernelKind::kSquaredError, {tokens_in(work), layer.width})};
}

std::vector<SavedTensor> saved_of(const LossLayer& layer, const LayerWork& work) {
  return {{.name = "predictions", .elements = tokens_in(work) * layer.width}};  // their gradient takes their place
}

std::int64_t workspace_of(const LossLayer& layer, const LayerWork& work, Pass pass) {
  if (pass != Pass::kForward) return 0;
  return tokens_in(work) * (layer.loss == LossKind::kCrossEntropy ? 1 : layer.width);  // the targets
}

std::int64_t input_of(const LossLayer& layer, const LayerWork& work) {
  return tokens_in(work) * layer.width;
}

std::int64_t output_of(const LossLayer&, const LayerWork&) {
  return 0;
}

}}  // namespace plumb::kernels
