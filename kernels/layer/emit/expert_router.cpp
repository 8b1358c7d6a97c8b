#include "kernels/layer/emit/expert_router.h"

#include "kernels/layer/emit/block_part.h"

namespace plumb { inline namespace kernels {

ExpertRouter::ExpertRouter(ProgramBuilder& builder, const TransformerLayer& layer)
    : layer_(layer),
      picks_(builder.tokens() * layer.experts_per_token),
      product_(builder.product("router", layer.experts, layer.hidden, -1, layer.router_bias)) {
  if (!layer.selection_bias) return;
  selection_bias_ = builder.parameter("router.selection_bias", {layer.experts});
  builder.parameter_at(selection_bias_).balance_rate = layer.balance_rate;
}

KernelCall ExpertRouter::product_call(const ProgramBuilder& builder, GemmForm form) const {
  const std::int64_t tokens = builder.tokens(), experts = layer_.experts, h = layer_.hidden;
  if (builder.on_device())
    return kernel_call(KernelKind::kRouterProduct, {tokens, experts, h, static_cast<std::int64_t>(form)});
  if (form == GemmForm::kForward) return gemm_call(tokens, experts, h, form);
  if (form == GemmForm::kInputGrad) return gemm_call(tokens, h, experts, form);
  return gemm_call(experts, h, tokens, form);
}

void ExpertRouter::forward(ProgramBuilder& builder, int rows) {
  const std::int64_t tokens = builder.tokens(), experts = layer_.experts;
  const std::int64_t lists = builder.work().microbatch * experts;
  probabilities_ = builder.tensor("router probabilities", tokens, experts, StoredType::kSingle);
  builder.kernel("router", product_call(builder, GemmForm::kForward), {rows}, {probabilities_}).parameters = {
      product_.weight};
  builder.add_bias(product_, probabilities_);
  if (builder.on_device()) {
    routes_ = {builder.tensor("picks", picks_, 1, StoredType::kInteger),
               builder.tensor("pick weights", picks_, 1, StoredType::kSingle),
               builder.tensor("places", picks_, 1, StoredType::kInteger),
               builder.tensor("expert loads", lists, 1, StoredType::kInteger)};
    by_expert_ = {builder.tensor("expert bounds", experts + 1, 1, StoredType::kInteger)};
  } else {
    routes_ = {builder.tensor("routes", 2 * picks_ + lists, 1, StoredType::kInteger)};
    by_expert_ = {builder.tensor("expert rows", 2, experts, StoredType::kInteger)};
  }
  LayerStep& routes =
      builder.kernel("routes", kernel_call(KernelKind::kRouter, {tokens, experts, layer_.experts_per_token}),
                     {probabilities_}, with(with({probabilities_}, routes_), by_expert_));
  if (selection_bias_ >= 0) routes.parameters = {selection_bias_};
  if (builder.work().context_parallel > 1) gather_whole_sequences(builder, lists);
}

/// A capacity counts the picks of whole sequences. A device also has these in order, their places, and those that it
/// keeps with their bounds and loads.
void ExpertRouter::gather_whole_sequences(ProgramBuilder& builder, std::int64_t lists) const {
  const int context = builder.work().context_parallel;
  const std::int64_t besides = builder.on_device() ? 2 * picks_ * context + picks_ + layer_.experts + 1 + lists : 0;
  const int whole = builder.tensor("picks of whole sequences", picks_ * context + besides, 1, StoredType::kInteger);
  builder.exchange("picks of whole sequences",
                   {.kind = ExchangeKind::kAllGather,
                    .group = ExchangeGroup::kContext,
                    .elements = picks_ * context,
                    .type = StoredType::kInteger},
                   {routes_.front()}, {whole});
}

void ExpertRouter::input_grad(ProgramBuilder& builder, int dinput, int weight_gradients) {
  const std::int64_t tokens = builder.tokens(), h = layer_.hidden;
  score_gradient_ = builder.in_place_of("score gradient", probabilities_);
  Positions writes = {score_gradient_};
  if (builder.on_device() || layer_.balance_loss > 0)
    writes.push_back(builder.tensor("gradients of the balance loss", builder.work().microbatch * layer_.experts, 1,
                                    StoredType::kSingle));
  LayerStep& routes =
      builder.kernel("routes", kernel_call(KernelKind::kRouter, {tokens, layer_.experts, layer_.experts_per_token}),
                     with({probabilities_, weight_gradients}, routes_), writes);
  if (selection_bias_ >= 0) routes.gradients = {selection_bias_};
  builder.enter(Section::kExpertTokens);
  const int part = builder.temporary(Room::kTokens, "gradient through the router", tokens, h);
  LayerStep& product = builder.kernel("router", product_call(builder, GemmForm::kInputGrad), {score_gradient_}, {part});
  product.parameters = {product_.weight};
  product.first_rank_only = true;
  add_rows(builder, "gradient through the router", h, dinput, part).first_rank_only = true;
}

void ExpertRouter::weight_grad(ProgramBuilder& builder, int rows) const {
  builder.kernel("router", product_call(builder, GemmForm::kWeightGrad), {score_gradient_, rows}, {}).gradients = {
      product_.weight};
  builder.bias_gradient(product_, score_gradient_, false);
}

}}  // namespace plumb::kernels
