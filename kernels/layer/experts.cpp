#include "kernels/layer/experts.h"

#include <algorithm>

#include "kernels/layer/kind_parts.h"

namespace plumb { inline namespace kernels {
namespace {

/// The sizes of a mixture on one rank.
struct ExpertShare {
  std::int64_t local;         // experts of this rank
  std::int64_t ffn;           // channels of one expert
  std::int64_t up_width;      // ffn, or twice as many if gated
  std::int64_t shared;        // channels of the shared expert
  std::int64_t shared_width;  // shared, or twice as many if gated
  std::int64_t tokens;        // T
  std::int64_t rows;          // R
};

ExpertShare share_of(const TransformerLayer& layer, const LayerWork& work) {
  const std::int64_t matrices = up_products(layer);
  const std::int64_t ffn = share(layer.expert_ffn, work.experts.tensor);
  const std::int64_t shared = share(layer.shared_ffn, work.tensor_parallel);
  return {.local = share(layer.experts, work.experts.parallel),
          .ffn = ffn,
          .up_width = matrices * ffn,
          .shared = shared,
          .shared_width = matrices * shared,
          .tokens = tokens_in(work),
          .rows = tokens_in(work) * layer.experts_per_token};
}

KernelCall experts_call(const ExpertShare& part, std::int64_t out, std::int64_t in, GemmForm form, bool fused) {
  const KernelKind kind = fused ? KernelKind::kExpertProducts : KernelKind::kGemm;
  const std::int64_t rows = (part.rows + part.local - 1) / part.local;
  const auto number = static_cast<std::int64_t>(form);
  if (form == GemmForm::kWeightGrad) return kernel_call(kind, {out, in, rows, part.local, number});
  return kernel_call(kind, {rows, out, in, part.local, number});
}

KernelCall router_call(std::int64_t tokens, std::int64_t experts, std::int64_t hidden, GemmForm form, bool fused) {
  if (fused) return kernel_call(KernelKind::kRouterProduct, {tokens, experts, hidden, static_cast<std::int64_t>(form)});
  if (form == GemmForm::kForward) return gemm_call(tokens, experts, hidden, form);
  if (form == GemmForm::kInputGrad) return gemm_call(tokens, hidden, experts, form);
  return gemm_call(experts, hidden, tokens, form);
}

}  // namespace

void append_expert_parameters(std::vector<ParameterTensor>& tensors, const TransformerLayer& layer, int tensor_parallel,
                              ExpertDivision division) {
  const ExpertShare part =
      share_of(layer, {.microbatch = 0, .sequence = 0, .tensor_parallel = tensor_parallel, .experts = division});
  const std::int64_t h = layer.hidden;
  const std::string up = layer.mlp == MlpKind::kSwiglu ? "gate_up" : "up";
  tensors.push_back({"router.weight", {layer.experts, h}});
  tensors.push_back({"experts." + up + ".weight", {part.local, part.up_width, h}, 1, true});
  tensors.push_back({"experts.down.weight", {part.local, h, part.ffn}, 2, true});
  if (layer.shared_ffn == 0) return;
  tensors.push_back({"shared." + up + ".weight", {part.shared_width, h}, 0});
  tensors.push_back({"shared.down.weight", {h, part.shared}, 1});
}

void append_expert_kernels(std::vector<KernelCall>& calls, const TransformerLayer& layer, const LayerWork& work,
                           Pass pass, bool fused) {
  const ExpertShare part = share_of(layer, work);
  const std::int64_t h = layer.hidden, tokens = part.tokens, gated = layer.mlp == MlpKind::kSwiglu ? 1 : 0;
  const bool shared = layer.shared_ffn > 0;
  const auto add = [&](KernelKind kind, std::vector<std::int64_t> shape) { calls.push_back(kernel_call(kind, shape)); };
  const auto add_experts = [&](std::int64_t out, std::int64_t in, GemmForm form) {
    calls.push_back(experts_call(part, out, in, form, fused));
  };
  const auto add_router = [&](GemmForm form) { calls.push_back(router_call(tokens, layer.experts, h, form, fused)); };
  if (pass == Pass::kForward) {
    add_router(GemmForm::kForward);
    add(KernelKind::kRouter, {tokens, layer.experts, layer.experts_per_token});
    add(KernelKind::kCopyRows, {part.rows, h});
    add_experts(part.up_width, h, GemmForm::kForward);
    if (shared) calls.push_back(gemm_call(tokens, part.shared_width, h, GemmForm::kForward));
    add(KernelKind::kActivationForward, {part.rows, part.ffn, gated});
    if (shared) add(KernelKind::kActivationForward, {tokens, part.shared, gated});
    add_experts(h, part.ffn, GemmForm::kForward);
    add(KernelKind::kCopyRows, {part.rows, h});
    if (!shared) return;
    calls.push_back(gemm_call(tokens, h, part.shared, GemmForm::kForward));
    add(KernelKind::kResidualAdd, {tokens, h});
  } else if (pass == Pass::kInputGrad) {
    add(KernelKind::kCopyRows, {part.rows, h});
    add_experts(part.ffn, h, GemmForm::kInputGrad);
    if (fused) add(KernelKind::kWeighPicks, {part.rows, part.ffn, h});
    add(KernelKind::kActivationBackward, {part.rows, part.ffn, gated});
    add_experts(h, part.up_width, GemmForm::kInputGrad);
    add(KernelKind::kCopyRows, {part.rows, h});
    add(KernelKind::kRouter, {tokens, layer.experts, layer.experts_per_token});
    add_router(GemmForm::kInputGrad);
    add(KernelKind::kResidualAdd, {tokens, h});
    if (!shared) return;
    calls.push_back(gemm_call(tokens, part.shared, h, GemmForm::kInputGrad));
    add(KernelKind::kActivationBackward, {tokens, part.shared, gated});
    calls.push_back(gemm_call(tokens, h, part.shared_width, GemmForm::kInputGrad));
    add(KernelKind::kResidualAdd, {tokens, h});
  } else {
    add_experts(h, part.ffn, GemmForm::kWeightGrad);
    add_experts(part.up_width, h, GemmForm::kWeightGrad);
    add_router(GemmForm::kWeightGrad);
    if (!shared) return;
    calls.push_back(gemm_call(h, part.shared, tokens, GemmForm::kWeightGrad));
    calls.push_back(gemm_call(part.shared_width, h, tokens, GemmForm::kWeightGrad));
  }
}

void append_expert_saved(std::vector<SavedTensor>& tensors, const TransformerLayer& layer, const LayerWork& work) {
  const ExpertShare part = share_of(layer, work);
  const std::int64_t h = layer.hidden;
  tensors.push_back({.name = "router probabilities",
                     .elements = part.tokens * layer.experts,
                     .single_precision = true,
                     .needed_by_weight_grad = true});
  // "routes": the picks, their rows, and the picks of each expert in each sequence. "expert rows": rows by expert, as
  // sent and as received.
  tensors.push_back(
      {.name = "routes", .elements = 2 * part.rows + work.microbatch * layer.experts, .single_precision = true});
  tensors.push_back(
      {.name = "expert rows", .elements = 2 * layer.experts, .single_precision = true, .needed_by_weight_grad = true});
  tensors.push_back({.name = "expert input", .elements = part.rows * h, .needed_by_weight_grad = true});
  tensors.push_back({.name = "up", .elements = part.rows * part.up_width, .needed_by_weight_grad = true});
  tensors.push_back({.name = "activation", .elements = part.rows * part.ffn, .needed_by_weight_grad = true});
  tensors.push_back({.name = "expert output gradient",
                     .elements = expert_gradient_elements(layer, work),
                     .needed_by_weight_grad = true,
                     .from_input_grad = true});
  if (layer.shared_ffn == 0) return;
  tensors.push_back({.name = "shared up", .elements = part.tokens * part.shared_width, .needed_by_weight_grad = true});
  tensors.push_back(
      {.name = "shared activation", .elements = part.tokens * part.shared, .needed_by_weight_grad = true});
}

std::int64_t expert_workspace(const TransformerLayer& layer, const LayerWork& work, Pass pass) {
  const ExpertShare part = share_of(layer, work);
  const std::int64_t routed = part.rows * layer.hidden, tokens = part.tokens * layer.hidden;
  if (pass == Pass::kForward) return routed + part.rows;  // the experts' output, and the weights of the picks
  // The maximum is over: the activation's gradient, beside the picks' weights and their gradient; the input's gradient
  // by pick and by token; two parts of the latter; the shared activation's gradient.
  return std::max(
      {part.rows * (part.ffn + 2), routed + tokens + part.rows, 2 * tokens, tokens + part.tokens * part.shared});
}

std::int64_t expert_gradient_elements(const TransformerLayer& layer, const LayerWork& work) {
  return share_of(layer, work).rows * layer.hidden;
}

}}  // namespace plumb::kernels
