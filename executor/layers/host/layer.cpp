#include "executor/layers/host/layer.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <variant>

#include "executor/layers/exchange_part.h"
#include "executor/layers/host/attention_step.h"
#include "executor/layers/host/embedding_step.h"
#include "executor/layers/host/expert_steps.h"
#include "executor/layers/host/head_exchange.h"
#include "executor/layers/host/host_kernels.h"
#include "executor/layers/host/latent_steps.h"
#include "executor/layers/host/loaded_data.h"
#include "executor/layers/host/loss_step.h"
#include "executor/layers/host/mamba2_steps.h"
#include "executor/layers/host/tensor_exchange.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns the rotary table of the tokens that a rank has, slice by slice.
std::vector<float> own_rotary_table(const TransformerLayer& block, const std::vector<LayerWork>& works,
                                    const ContextSeat& seat) {
  const std::vector<float> whole = rotary_table(works.front().whole(), block.rotary_size, block.rope_theta);
  std::vector<float> own;
  for (const LayerWork& work : works) {
    const ContextTokens tokens = context_tokens({work.earlier_tokens, work.sequence}, seat);
    for (const TokenRange& run : {tokens.first, tokens.second})
      own.insert(own.end(), whole.begin() + run.first * block.rotary_size,
                 whole.begin() + (run.first + run.count) * block.rotary_size);
  }
  return own;
}

}  // namespace

CpuLayer::CpuLayer(const Layer& layer, const std::vector<LayerWork>& works, const LayerSeat& seat) : seat_(seat) {
  for (const LayerWork& work : works) programs_.emplace_back(layer, work);
  if (const auto* block = std::get_if<TransformerLayer>(&layer);
      block != nullptr && block->heads > 0 && block->rotary_size > 0)
    rotary_ = own_rotary_table(*block, works, seat.context);
}

Tensor CpuLayer::forward(const LayerCall& call, Tensor input, LayerSaved& saved) const {
  const HostProgram& program = saved.program();
  const LayerProgram& steps = program.steps();
  if (call.keep_input && program.overwrites_input()) {
    saved.input = call.context.pool->take(input.elements());
    std::ranges::copy(input.values(), saved.input.values().begin());
  }
  if (steps.input >= 0) saved.at(steps.input) = std::move(input);
  run(Pass::kForward, call, saved);
  if (steps.output < 0) return {};
  Tensor& output = saved.at(steps.output);
  if (program.tensor(steps.output).origin == Origin::kLoaded) {
    output = call.context.pool->take(program.tensor(steps.output).elements());
    load_data(output, program.layer(), call);
  }
  return std::move(output);
}

Tensor CpuLayer::input_grad(const LayerCall& call, Tensor output_gradient, LayerSaved& saved) const {
  const LayerProgram& steps = saved.program().steps();
  if (steps.output_gradient >= 0) saved.at(steps.output_gradient) = std::move(output_gradient);
  run(Pass::kInputGrad, call, saved);
  if (call.sequence != nullptr && call.context.slice == 0) *call.sequence = {};  // its slices are done
  if (steps.input_gradient < 0) return {};
  return std::move(saved.at(steps.input_gradient));
}

void CpuLayer::weight_grad(const LayerCall& call, LayerSaved& saved) const {
  run(Pass::kWeightGrad, call, saved);
}

void CpuLayer::rebuild_cheap(const LayerCall& call, LayerSaved& saved) const {
  for (const LayerStep& step : steps_of(saved.program().steps(), Pass::kForward))
    if (step.cheap) run_step(step, call, saved);
}

void CpuLayer::run(Pass pass, const LayerCall& call, LayerSaved& saved) const {
  const HostProgram& program = saved.program();
  const LayerProgram& steps = program.steps();
  for (const LayerStep& step : steps_of(steps, pass)) {
    run_step(step, call, saved);
    const auto position = static_cast<int>(&step - steps.steps.data());
    for (std::size_t storage = 0; storage < program.storages(); ++storage) {
      if (program.last_step(storage) != position || program.is_handed(storage, pass)) continue;
      const bool is_input = steps.input >= 0 && storage == program.storage_of(steps.input);
      if (pass == Pass::kForward && is_input && call.keep_input) continue;
      saved.held[storage] = {};
    }
  }
}

void CpuLayer::run_step(const LayerStep& step, const LayerCall& call, LayerSaved& saved) const {
  const HostProgram& program = saved.program();
  Tensor beside;
  const HostStep of{.program = program, .step = step, .call = call, .saved = saved, .beside = beside};
  const bool is_of_expert = !step.parameters.empty() && program.is_of_experts(step.parameters.front());
  if (step.first_rank_only && (is_of_expert ? seat_.experts.tensor : seat_.tensor).rank > 0) return;
  const auto memory_for = [&](const LayerTensor& tensor) {
    if (tensor.counted != CountedRows::kNone) return take_counted(of, tensor);
    return call.context.pool->take(tensor.elements());
  };
  for (const int tensor : step.reads)
    if (Tensor& data = saved.at(tensor); program.tensor(tensor).origin == Origin::kLoaded && data.empty()) {
      data = memory_for(program.tensor(tensor));
      load_data(data, program.layer(), call);
    }
  if (step.beside) beside = memory_for(program.tensor(step.writes[0]));
  for (const int tensor : step.writes)
    if (Tensor& result = saved.at(tensor); result.empty()) result = memory_for(program.tensor(tensor));
  perform(of);
  if (step.beside) saved.at(step.writes[0]) = std::move(beside);
}

void CpuLayer::perform(const HostStep& of) const {
  if (of.step.exchange() != nullptr) return perform_exchange(of);
  if (is_of_experts(of)) return run_expert_kernel(of);
  if (is_latent(of)) return run_latent_kernel(of);
  if (is_of_mamba2(of)) return run_mamba2_kernel(of);
  switch (of.step.call()->kind) {
    case KernelKind::kAttentionForward:
    case KernelKind::kAttentionBackward:
    case KernelKind::kLatentAttentionForward:
    case KernelKind::kLatentAttentionBackward:
      return attend(of);
    case KernelKind::kRotary:
      return rotate(of);
    case KernelKind::kEmbeddingForward:
    case KernelKind::kEmbeddingBackward:
      return run_embedding(of);
    case KernelKind::kCrossEntropy:
      return take_loss(of);
    default:
      return run_kernel(of);
  }
}

void CpuLayer::perform_exchange(const HostStep& of) const {
  switch (part_of(*of.step.exchange())) {
    case ExchangePart::kTensorGroup:
      return run_tensor_exchange(of);
    case ExchangePart::kExpertGroup:
      return run_expert_exchange(of);
    case ExchangePart::kHeads:
      return exchange_heads(of);
    case ExchangePart::kPicks:
      return share_picks(of);
    case ExchangePart::kAttention:
      return;
  }
}

/// The heads of latent attention turn their last channels, and the key that they share has no others.
void CpuLayer::rotate(const HostStep& of) const {
  const auto& block = std::get<TransformerLayer>(of.program.layer());
  const bool is_latent = block.kv_rank > 0;
  const std::int64_t width = of.program.tensor(of.step.writes[0]).columns;
  const RotarySize size{.tokens = of.rows(),
                        .sequence = of.context().work.sequence,
                        .heads = of.shape()[1],
                        .head_size = is_latent ? width / of.shape()[1] : block.head_size,
                        .row_width = width,
                        .rotary_size = of.shape()[2]};
  const std::int64_t first = is_latent ? size.head_size - size.rotary_size : 0;
  of.kernels().rotary(of.written(0) + first, rotary_.data() + of.context().own_tokens_before() * block.rotary_size,
                      size, of.is_forward() ? RotaryDirection::kForward : RotaryDirection::kBackward);
}

std::int64_t CpuLayer::scratch_elements() const {
  const HostProgram& first = programs_.front();
  return std::max({attention_scratch_of(first, seat_), convolution_scratch_of(first), mamba2_scratch_of(first)});
}

ElementRange CpuLayer::tied_table(ModelEnd end) const {
  const Layer& share = programs_.front().share();
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&share); embedding != nullptr && end == ModelEnd::kEmbedding)
    return {parameter_offset(share, "tokens.weight"), embedding->vocab * embedding->hidden};
  if (const auto* head = std::get_if<HeadLayer>(&share); head != nullptr && end == ModelEnd::kHead && head->tied)
    return {parameter_offset(share, "projection.weight"), head->vocab * head->hidden};
  return {};
}

}}  // namespace plumb::executor
