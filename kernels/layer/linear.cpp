#include <algorithm>

#include "kernels/layer/kind_parts.h"

namespace plumb { inline namespace kernels {

std::vector<ParameterTensor> parameters_of(const LinearLayer& layer, int, ExpertDivision) {
  std::vector<ParameterTensor> tensors = {{"weight", {layer.out, layer.in}}};
  if (layer.bias) tensors.push_back({"bias", {layer.out}});
  return tensors;
}

std::vector<KernelCall> kernels_of(const LinearLayer& layer, const LayerWork& work, Pass pass) {
  const std::int64_t rows = tokens_in(work);
  std::vector<KernelCall> calls;
  if (pass == Pass::kForward) {
    calls.push_back(gemm_call(rows, layer.out, layer.in, GemmForm::kForward));
    if (layer.bias) calls.push_back(kernel_call(KernelKind::kBiasForward, {rows, layer.out}));
    if (layer.activation == Activation::kRelu)
      calls.push_back(kernel_call(KernelKind::kReluForward, {rows, layer.out}));
    if (layer.activation == Activation::kGelu)
      calls.push_back(kernel_call(KernelKind::kActivationForward, {rows, layer.out, 0}));
    if (layer.dropout > 0) calls.push_back(kernel_call(KernelKind::kDropout, {rows, layer.out}));
  } else if (pass == Pass::kInputGrad) {
    if (layer.dropout > 0) calls.push_back(kernel_call(KernelKind::kDropout, {rows, layer.out}));
    if (layer.activation == Activation::kRelu)
      calls.push_back(kernel_call(KernelKind::kReluBackward, {rows, layer.out}));
    if (layer.activation == Activation::kGelu)
      calls.push_back(kernel_call(KernelKind::kActivationBackward, {rows, layer.out, 0}));
    if (layer.input_grad) calls.push_back(gemm_call(rows, layer.in, layer.out, GemmForm::kInputGrad));
  } else {
    calls.push_back(gemm_call(layer.out, layer.in, rows, GemmForm::kWeightGrad));
    if (layer.bias) calls.push_back(kernel_call(KernelKind::kBiasBackward, {rows, layer.out}));
  }
  return calls;
}

std::vector<SavedTensor> saved_of(const LinearLayer& layer, const LayerWork& work) {
  const std::int64_t output = output_of(layer, work);
  std::vector<SavedTensor> tensors = {
      {.name = "input", .elements = input_of(layer, work), .needed_by_weight_grad = true}};
  // Its gradient takes its place, so the output's gradient need not be kept.
  if (layer.activation == Activation::kGelu) {
    tensors.push_back({.name = "before activation", .elements = output, .needed_by_weight_grad = true});
    return tensors;
  }
  if (layer.activation == Activation::kRelu)
    tensors.push_back({.name = "relu mask", .elements = (output + 31) / 32, .single_precision = true});
  tensors.push_back(
      {.name = "output gradient", .elements = output, .needed_by_weight_grad = true, .from_input_grad = true});
  return tensors;
}

std::int64_t workspace_of(const LinearLayer& layer, const LayerWork& work, Pass pass) {
  return pass == Pass::kInputGrad && layer.input_grad ? input_of(layer, work) : 0;  // the input's gradient
}

std::int64_t input_of(const LinearLayer& layer, const LayerWork& work) {
  return tokens_in(work) * layer.in;
}

std::int64_t output_of(const LinearLayer& layer, const LayerWork& work) {
  return tokens_in(work) * layer.out;
}

std::vector<ParameterTensor> parameters_of(const MlpLayer& layer, int, ExpertDivision) {
  return {{"up.weight", {layer.ffn, layer.hidden}},
          {"up.bias", {layer.ffn}},
          {"down.weight", {layer.hidden, layer.ffn}},
          {"down.bias", {layer.hidden}}};
}

std::vector<KernelCall> kernels_of(const MlpLayer& layer, const LayerWork& work, Pass pass) {
  const std::int64_t rows = tokens_in(work), h = layer.hidden, f = layer.ffn;
  if (pass == Pass::kForward)
    return {gemm_call(rows, f, h, GemmForm::kForward),
            kernel_call(KernelKind::kBiasForward, {rows, f}),
            kernel_call(KernelKind::kActivationForward, {rows, f, 0}),
            gemm_call(rows, h, f, GemmForm::kForward),
            kernel_call(KernelKind::kBiasForward, {rows, h}),
            kernel_call(KernelKind::kResidualAdd, {rows, h})};
  if (pass == Pass::kInputGrad)
    return {gemm_call(rows, f, h, GemmForm::kInputGrad), kernel_call(KernelKind::kActivationBackward, {rows, f, 0}),
            gemm_call(rows, h, f, GemmForm::kInputGrad), kernel_call(KernelKind::kResidualAdd, {rows, h})};
  return {gemm_call(h, f, rows, GemmForm::kWeightGrad), kernel_call(KernelKind::kBiasBackward, {rows, h}),
          gemm_call(f, h, rows, GemmForm::kWeightGrad), kernel_call(KernelKind::kBiasBackward, {rows, f})};
}

std::vector<SavedTensor> saved_of(const MlpLayer& layer, const LayerWork& work) {
  const std::int64_t rows = tokens_in(work);
  return {{.name = "input", .elements = rows * layer.hidden, .needed_by_weight_grad = true},
          {.name = "up", .elements = rows * layer.ffn, .needed_by_weight_grad = true},
          {.name = "activation", .elements = rows * layer.ffn, .needed_by_weight_grad = true},
          {.name = "output gradient",
           .elements = rows * layer.hidden,
           .needed_by_weight_grad = true,
           .from_input_grad = true}};
}

std::int64_t workspace_of(const MlpLayer& layer, const LayerWork& work, Pass pass) {
  if (pass != Pass::kInputGrad) return 0;
  return tokens_in(work) * std::max(layer.ffn, layer.hidden);  // the activation's gradient, then the input's
}

std::int64_t input_of(const MlpLayer& layer, const LayerWork& work) {
  return tokens_in(work) * layer.hidden;
}

std::int64_t output_of(const MlpLayer& layer, const LayerWork& work) {
  return tokens_in(work) * layer.hidden;
}

}}  // namespace plumb::kernels
