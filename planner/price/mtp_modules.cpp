#include "planner/price/mtp_modules.h"

#include <algorithm>

namespace plumb { inline namespace planner {
namespace {

PassPrice times(const PassPrice& price, std::int64_t count) {
  PassPrice sum;
  for (std::int64_t i = 0; i < count; ++i) sum += price;
  return sum;
}

std::int64_t rank_tokens(const LayerWork& work) {
  return work.microbatch * (work.sequence / work.context_parallel);
}

/// Returns the time of one of the projection's products.
Seconds product_time(const KernelPrices& kernels, const ModelSpec& model, const LayerWork& work, GemmForm form) {
  const std::int64_t tokens = rank_tokens(work), out = share(model.hidden, work.tensor_parallel), in = 2 * model.hidden;
  const auto call = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return kernel_time(kernels, kernel_call(KernelKind::kGemm, {m, n, k, 1, static_cast<std::int64_t>(form)}));
  };
  switch (form) {
    case GemmForm::kInputGrad:
      return call(tokens, in, out);
    case GemmForm::kWeightGrad:
      return call(out, in, tokens);
    default:
      return call(tokens, out, in);
  }
}

/// Returns the bytes that a module keeps of a micro-batch besides its block and its logits: the stream and the
/// embedding before their norms, and both behind them, joined.
double kept_bytes(const ModelSpec& model, const TrainingSpec& training, const Layout& layout) {
  const LayerWork work = work_of(training, layout);
  const std::int64_t rows = work.sequence_parallel ? share(rank_tokens(work), work.tensor_parallel) : rank_tokens(work);
  constexpr double kTensors = 4;
  return kTensors * static_cast<double>(rows * model.hidden) *
         static_cast<double>(bytes_per_element(training.precision));
}

}  // namespace

std::int64_t mtp_parameters(const ModelSpec& model, const Layout& layout) {
  const std::int64_t projection = 2 * model.hidden * model.hidden;
  const std::int64_t norms = mtp_frame_parameters(model) - projection;
  const std::int64_t table = layout.pipeline > 1 ? largest_share(model.vocab, layout.tensor) * model.hidden : 0;
  return model.mtp_modules * (largest_share(projection, layout.tensor) + norms) + table;
}

LayerPrice with_mtp_modules(const LayerPrice& head, const LayerPrice& block, const KernelPrices& kernels,
                            const ModelSpec& model, const LayerWork& work) {
  LayerPrice price = head;
  const auto add = [&](PassPrice LayerPrice::*pass, GemmForm form) {
    PassPrice module = block.*pass;
    module += head.*pass;
    module.compute += product_time(kernels, model, work, form);
    (price.*pass) += times(module, model.mtp_modules);
  };
  add(&LayerPrice::forward, GemmForm::kForward);
  add(&LayerPrice::input_grad, GemmForm::kInputGrad);
  add(&LayerPrice::weight_grad, GemmForm::kWeightGrad);
  price.rebuild_selective += times(block.rebuild_selective, model.mtp_modules);
  price.rebuild_full += times(block.rebuild_full, model.mtp_modules);
  for (std::size_t kind = 0; kind < price.hidden.size(); ++kind)
    price.hidden[kind] += static_cast<double>(model.mtp_modules) * (block.hidden[kind] + head.hidden[kind]);
  return price;
}

LayerFootprint with_mtp_modules(const LayerFootprint& head, const LayerFootprint& block, const ModelSpec& model,
                                const TrainingSpec& training, const Layout& layout) {
  const std::int64_t count = model.mtp_modules, own = mtp_parameters(model, layout);
  const auto kept = static_cast<std::int64_t>(kept_bytes(model, training, layout));
  LayerFootprint sum = head;
  sum.parameters += count * block.parameters + own;
  sum.expert_parameters += count * block.expert_parameters;
  sum.optimizer_bytes += count * block.optimizer_bytes + own * optimizer_bytes_per_parameter(training);
  sum.expert_optimizer_bytes += count * block.expert_optimizer_bytes;
  sum.kept_bytes += count * (block.kept_bytes + head.kept_bytes + kept);
  sum.rebuilt_bytes += count * block.rebuilt_bytes;
  sum.released_at_input_grad_bytes += count * (block.released_at_input_grad_bytes + head.released_at_input_grad_bytes);
  sum.forward_workspace_bytes = std::max(sum.forward_workspace_bytes, block.forward_workspace_bytes);
  sum.backward_workspace_bytes = std::max(sum.backward_workspace_bytes, block.backward_workspace_bytes);
  return sum;
}

FrameworkFootprint with_mtp_modules(const FrameworkFootprint& head, const FrameworkFootprint& block,
                                    const ModelSpec& model, const TrainingSpec& training, const Layout& layout) {
  const auto count = static_cast<double>(model.mtp_modules);
  FrameworkFootprint sum = head;
  sum.parameters += model.mtp_modules * block.parameters + mtp_parameters(model, layout);
  sum.expert_parameters += model.mtp_modules * block.expert_parameters;
  sum.largest_tensor = std::max(sum.largest_tensor, block.largest_tensor);
  sum.kept += count * (block.kept + head.kept + kept_bytes(model, training, layout));
  sum.rebuilt += count * block.rebuilt;
  sum.released += count * block.released;
  sum.backward = std::max(sum.backward, block.backward);
  sum.split_backward = std::max(sum.split_backward, block.split_backward);
  sum.score_buffer = std::max(sum.score_buffer, block.score_buffer);
  sum.at_loss += count * head.at_loss;  // the logits of all predictions wait for one backward
  sum.weights.insert(sum.weights.end(), block.weights.begin(), block.weights.end());
  return sum;
}

}}  // namespace plumb::planner
