// A mixture of experts on the CPU (Shazeer et al. 2017; Lepikhin et al. 2020). T tokens pick k of E experts each. The
// picks are rows in the order of their experts: n rows of this rank's tokens and, with expert parallelism, m rows of
// its own experts. The forward routes, exchanges [n, h] by all-to-all for [m, h], runs the experts, exchanges [m, h]
// for [n, h], and sums with the picks' weights to [T, h]. The backward does the same with gradients; the picks' weights
// go along, and their gradients come back. A tensor rank has T tokens and f/t channels of each expert, so it returns a
// part of the sum. The first tensor rank alone adds the router's gradient.

#include <algorithm>
#include <utility>

#include "executor/cpu/layers/expert_exchange.h"
#include "executor/cpu/layers/expert_routes.h"
#include "executor/cpu/layers/feed_forward.h"
#include "executor/cpu/layers/tensor_parallel.h"

namespace plumb { inline namespace executor {
namespace {

std::span<std::int32_t> integers(Tensor& tensor, std::int64_t first, std::int64_t count) {
  return {tensor.tokens() + first, static_cast<std::size_t>(count)};
}

struct ExpertsSaved : FeedForwardSaved {
  Tensor probabilities;    // [T, E]; after the input gradient the gradient of the router's scores
  Tensor routes;           // picks [T, k], places [T, k], loads [b, E]
  Tensor rows;             // sent [E], received [ranks, E/ranks]
  Tensor input;            // [m, h]
  Tensor output_gradient;  // [m, h] times the picks' weights, between the input and the weight gradient
  Tensor shared_up;        // [T, shared u]
  Tensor shared_activation;

  std::vector<Tensor*> tensors() override {
    return {&probabilities, &routes, &rows, &input, &up, &activation, &output_gradient, &shared_up, &shared_activation};
  }
  std::vector<Tensor*> cheap() override { return {&activation, &shared_activation}; }
  std::vector<Tensor*> narrowable() override {
    return {&input, &up, &activation, &output_gradient, &shared_up, &shared_activation};
  }
};

class Experts : public FeedForward {
 public:
  Experts(const TransformerLayer& layer, const LayerSeat& seat)
      : layer_(layer),
        expert_(with_ffn(layer, layer.expert_ffn)),
        shared_(with_ffn(layer, layer.shared_ffn)),
        seat_(seat),
        matrices_(up_products(layer)) {
    const std::string up = layer.mlp == MlpKind::kSwiglu ? "gate_up" : "up";
    router_ = parameter_offset(layer, "router.weight");
    up_ = parameter_offset(layer, "experts." + up + ".weight", seat.experts.ranks);
    down_ = parameter_offset(layer, "experts.down.weight", seat.experts.ranks);
    shared_up_ = parameter_offset(layer, "shared." + up + ".weight");
    shared_down_ = parameter_offset(layer, "shared.down.weight");
  }

  std::unique_ptr<FeedForwardSaved> make_saved() const override { return std::make_unique<ExpertsSaved>(); }
  Tensor forward(const LayerCall& call, const Tensor& input, FeedForwardSaved& kept) const override;
  Tensor input_grad(const LayerCall& call, const Tensor& output_gradient, FeedForwardSaved& kept,
                    double& balance_loss) const override;
  void weight_grad(const LayerCall& call, const Tensor& output_gradient, const Tensor& input,
                   FeedForwardSaved& kept) const override;
  void activate(const LayerCall& call, FeedForwardSaved& kept) const override;

 private:
  std::int64_t width() const { return matrices_ * layer_.expert_ffn; }
  std::int64_t shared_width() const { return matrices_ * layer_.shared_ffn; }
  std::int64_t picks_of(const CpuContext& context) const { return tokens_of(context.work) * layer_.experts_per_token; }

  RouterSize router_size(const CpuContext& context) const {
    return {tokens_of(context.work), layer_.experts, layer_.experts_per_token};
  }
  CopyRowsSize copy_size(const CpuContext& context, std::int64_t columns) const {
    return {tokens_of(context.work), layer_.experts_per_token, columns};
  }
  RouteSize route_size(const LayerCall& call) const {
    return {.sequences = call.context.work.microbatch,
            .sequence = call.place.sequence,
            .experts = layer_.experts,
            .picks = layer_.experts_per_token,
            .capacity = expert_capacity(layer_, call.place.sequence)};
  }

  /// Returns the most rows: own experts have at most the picks of all ranks, and a token picks each expert at most
  /// once.
  ExpertRoom room(const CpuContext& context) const {
    const std::int64_t ranks = seat_.experts.ranks, own = layer_.experts / std::max<std::int64_t>(1, ranks);
    const std::int64_t picked = picks_of(context);
    return {picked, std::max(picked, ranks * tokens_of(context.work) * std::min(own, layer_.experts_per_token))};
  }

  const std::int32_t* picks(const ExpertsSaved& saved) const { return saved.routes.tokens(); }
  const std::int32_t* places(const ExpertsSaved& saved, const CpuContext& context) const {
    return saved.routes.tokens() + picks_of(context);
  }
  ExpertExchange exchange(const CpuContext& context, const ExpertsSaved& saved) const {
    const auto experts = static_cast<std::size_t>(layer_.experts);
    return {context, {saved.rows.tokens(), experts}, {saved.rows.tokens() + experts, experts}, room(context)};
  }

  void route(const LayerCall& call, ExpertsSaved& saved) const;
  Tensor whole_picks(const LayerCall& call, ExpertsSaved& saved) const;
  Tensor expert_input_grad(const LayerCall& call, const float* output_gradient, ExpertsSaved& saved,
                           Tensor& weight_gradients) const;
  double router_input_grad(const LayerCall& call, Tensor& dinput, const Tensor& weight_gradients,
                           ExpertsSaved& saved) const;
  void shared_input_grad(const LayerCall& call, Tensor& dinput, const float* output_gradient,
                         ExpertsSaved& saved) const;

  TransformerLayer layer_;   // a tensor rank's share
  TransformerLayer expert_;  // the layer whose MLP has the channels of one expert
  TransformerLayer shared_;  // the layer whose MLP has the channels of the shared expert
  LayerSeat seat_;
  std::int64_t matrices_;  // matrices of an expert's first product
  std::int64_t router_ = -1, up_ = -1, down_ = -1, shared_up_ = -1, shared_down_ = -1;
};

/// Returns the picks of whole sequences [b, s, k] where some of their tokens are on other context ranks. Picks of
/// slices are in call.sequence instead, and nothing is returned. Nothing is returned either where all tokens are on
/// this rank.
Tensor Experts::whole_picks(const LayerCall& call, ExpertsSaved& saved) const {
  const CpuContext& context = call.context;
  const RouteSize size = route_size(call);
  const std::int64_t own = picks_of(context), all = size.sequences * size.sequence * size.picks;
  const auto mine = std::span<const std::int32_t>(integers(saved.routes, 0, own));
  Communicator* group = context.groups.context;
  if (group == nullptr && call.sequence == nullptr) return {};
  Tensor of_call;
  Tensor& whole = call.sequence == nullptr ? of_call : call.sequence->picks;
  if (whole.empty()) {
    whole = context.pool->take(all);
    std::ranges::fill(integers(whole, 0, all), -1);
  }
  if (group == nullptr) {
    spread_picks(integers(whole, 0, all), mine, {call.place.slice, call.place.second_slice}, size);
    return {};
  }
  Tensor gathered = context.pool->take(group->members() * own);
  std::ranges::copy(mine, gathered.tokens() + group->member() * own);
  group->run(all_gather(gathered.values()));
  const TokenRange shared{context.first_token, group->members() * context.work.sequence};
  for (int rank = 0; rank < group->members(); ++rank)
    spread_picks(integers(whole, 0, all), integers(gathered, rank * own, own),
                 context_tokens(shared, {group->members(), rank, seat_.context.attention}), size);
  return of_call;
}

/// Routes: makes picks, places, loads and the experts' row counts from the scores in `probabilities`.
void Experts::route(const LayerCall& call, ExpertsSaved& saved) const {
  const CpuContext& context = call.context;
  const std::int64_t own = picks_of(context);
  const RouteSize size = route_size(call);
  saved.routes = context.pool->take(2 * own + size.sequences * size.experts);
  saved.rows = context.pool->take(2 * size.experts);
  context.kernels.router_forward(saved.probabilities.data(), saved.routes.tokens(), router_size(context));
  Tensor elsewhere = whole_picks(call, saved);
  const std::int64_t all = size.sequences * size.sequence * size.picks;
  const auto whole = call.sequence != nullptr ? integers(call.sequence->picks, 0, all)
                     : !elsewhere.empty()     ? integers(elsewhere, 0, all)
                                              : integers(saved.routes, 0, own);
  const auto sent = integers(saved.rows, 0, size.experts);
  place_picks(integers(saved.routes, own, own), sent, whole, {call.place.slice, call.place.second_slice}, size);
  count_loads(integers(saved.routes, 2 * own, size.sequences * size.experts), whole, size);
  ExpertExchange::share_counts(context, integers(saved.rows, size.experts, size.experts), sent);
}

void Experts::activate(const LayerCall& call, FeedForwardSaved& kept) const {
  auto& saved = static_cast<ExpertsSaved&>(kept);
  const CpuContext& context = call.context;
  const std::int64_t held = saved.up.elements() / width();
  const ExpertExchange exchange = this->exchange(context, saved);
  saved.activation = exchange.take_rows(held, layer_.expert_ffn);
  context.kernels.activation_forward(expert_, saved.activation.data(), saved.up.data(), exchange.expert_rows());
  if (layer_.shared_ffn == 0) return;
  const std::int64_t tokens = tokens_of(context.work);
  saved.shared_activation = context.pool->take(tokens * layer_.shared_ffn);
  context.kernels.activation_forward(shared_, saved.shared_activation.data(), saved.shared_up.data(), tokens);
}

Tensor Experts::forward(const LayerCall& call, const Tensor& own_input, FeedForwardSaved& kept) const {
  auto& saved = static_cast<ExpertsSaved&>(kept);
  const CpuContext& context = call.context;
  const CpuKernelSet& kernels = context.kernels;
  TensorPool& pool = *context.pool;
  const std::int64_t tokens = tokens_of(context.work), h = layer_.hidden, ffn = layer_.expert_ffn;
  AllRows input = all_rows(context, own_input, h);
  saved.probabilities = pool.take(tokens * layer_.experts);
  kernels.linear_forward(saved.probabilities.data(), input.rows, call.weights + router_, {tokens, layer_.experts, h});
  route(call, saved);

  const ExpertExchange exchange = this->exchange(context, saved);
  // With a capacity, rows of dropped picks stay unused, so that the number of rows is known before.
  const bool is_exact = layer_.capacity_factor == 0 && context.groups.expert != nullptr;
  const std::int64_t rows = exchange.expert_rows(), held = is_exact ? rows : std::max(rows, picks_of(context));
  saved.input = exchange.take_rows(held, h);
  if (context.groups.expert == nullptr) {
    kernels.place_rows(saved.input.data(), input.rows, places(saved, context), copy_size(context, h));
  } else {
    Tensor sent = exchange.take_sent(h);
    kernels.place_rows(sent.data(), input.rows, places(saved, context), copy_size(context, h));
    exchange.to_experts(saved.input.data(), sent.data(), h);
  }
  const std::vector<std::int64_t>& by_expert = exchange.rows_of_expert();
  saved.up = exchange.take_rows(held, width());
  kernels.experts_forward(saved.up.data(), saved.input.data(), call.expert_weights + up_, by_expert, width(), h);
  if (layer_.shared_ffn > 0) {
    saved.shared_up = pool.take(tokens * shared_width());
    kernels.linear_forward(saved.shared_up.data(), input.rows, call.weights + shared_up_, {tokens, shared_width(), h});
  }
  input = {};
  activate(call, saved);

  Tensor experts = exchange.take_rows(held, h);
  kernels.experts_forward(experts.data(), saved.activation.data(), call.expert_weights + down_, by_expert, h, ffn);
  if (context.groups.expert != nullptr) {
    Tensor returned = exchange.take_sent(h);
    exchange.from_experts(returned.data(), experts.data(), h);
    experts = std::move(returned);
  }
  Tensor weights = pool.take(picks_of(context));
  pick_weights(weights.data(), saved.probabilities.data(), picks(saved), router_size(context), layer_.renormalised);
  Tensor output = pool.take(tokens * h);
  kernels.sum_placed_rows(output.data(), experts.data(), places(saved, context), weights.data(), copy_size(context, h));
  experts = {};
  weights = {};
  if (layer_.shared_ffn > 0) {
    Tensor shared = pool.take(tokens * h);
    kernels.linear_forward(shared.data(), saved.shared_activation.data(), call.weights + shared_down_,
                           {tokens, h, layer_.shared_ffn});
    kernels.residual_add(output.data(), output.data(), shared.data(), tokens, h);
  }
  return output;
}

/// Returns the input's gradient by token. `weight_gradients` [T, k] receive the gradients of the picks' weights.
Tensor Experts::expert_input_grad(const LayerCall& call, const float* output_gradient, ExpertsSaved& saved,
                                  Tensor& weight_gradients) const {
  const CpuContext& context = call.context;
  const CpuKernelSet& kernels = context.kernels;
  TensorPool& pool = *context.pool;
  const std::int64_t tokens = tokens_of(context.work), h = layer_.hidden, ffn = layer_.expert_ffn;
  const std::int64_t k = layer_.experts_per_token, picked = picks_of(context);
  const ExpertExchange exchange = this->exchange(context, saved);
  const std::vector<std::int64_t>& by_expert = exchange.rows_of_expert();
  const std::int64_t rows = exchange.expert_rows(), held = saved.input.elements() / h;
  const bool is_spread = context.groups.expert != nullptr;
  const std::int32_t* places = this->places(saved, context);

  Tensor weights = exchange.take_rows(std::max(rows, picked), 1);  // [expert's row]
  {
    Tensor by_pick = pool.take(picked), sent_weights;
    pick_weights(by_pick.data(), saved.probabilities.data(), picks(saved), router_size(context), layer_.renormalised);
    if (is_spread) sent_weights = exchange.take_sent(1);
    float* placed = is_spread ? sent_weights.data() : weights.data();
    for (std::int64_t pick = 0; pick < picked; ++pick)
      if (places[pick] >= 0) placed[places[pick]] = by_pick.data()[pick];
    if (is_spread) exchange.to_experts(weights.data(), placed, 1);
  }
  saved.output_gradient = exchange.take_rows(held, h);
  if (is_spread) {
    Tensor sent = exchange.take_sent(h);
    kernels.place_rows(sent.data(), output_gradient, places, copy_size(context, h));
    exchange.to_experts(saved.output_gradient.data(), sent.data(), h);
  } else {
    kernels.place_rows(saved.output_gradient.data(), output_gradient, places, copy_size(context, h));
  }

  Tensor dactivation = exchange.take_rows(held, ffn), dweights = exchange.take_rows(std::max(rows, picked), 1);
  kernels.experts_input_grad(dactivation.data(), saved.output_gradient.data(), call.expert_weights + down_, by_expert,
                             ffn, h);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float weight = weights.data()[row];
    const float* activation = saved.activation.data() + row * ffn;
    float* gradient = dactivation.data() + row * ffn;
    float sum = 0;
    for (std::int64_t c = 0; c < ffn; ++c) {
      sum += gradient[c] * activation[c];
      gradient[c] *= weight;
    }
    dweights.data()[row] = sum;
    float* output = saved.output_gradient.data() + row * h;
    for (std::int64_t c = 0; c < h; ++c) output[c] *= weight;
  }
  weights = {};
  kernels.activation_backward(expert_, saved.up.data(), dactivation.data(), rows);
  dactivation = {};
  Tensor by_row = exchange.take_rows(held, h);
  kernels.experts_input_grad(by_row.data(), saved.up.data(), call.expert_weights + up_, by_expert, h, width());
  if (is_spread) {
    Tensor returned = exchange.take_sent(h);
    Tensor returned_weights = exchange.take_sent(1);
    exchange.from_experts(returned.data(), by_row.data(), h);
    exchange.from_experts(returned_weights.data(), dweights.data(), 1);
    by_row = std::move(returned);
    dweights = std::move(returned_weights);
  }
  Tensor dinput = pool.take(tokens * h);
  kernels.sum_placed_rows(dinput.data(), by_row.data(), places, nullptr, copy_size(context, h));
  by_row = {};
  weight_gradients = pool.take(tokens * k);
  for (std::int64_t pick = 0; pick < picked; ++pick)
    weight_gradients.data()[pick] = places[pick] < 0 ? 0.0F : dweights.data()[places[pick]];
  return dinput;
}

/// Adds the router's part to the input's gradient and returns the load-balancing loss. The loss of a sequence is
/// balance_loss * E * sum_e f_e P_e, with an expert's share f_e of the picks and its mean probability P_e (Fedus et al.
/// 2021, by sequence as in DeepSeek-AI 2024). Here it is summed over the own tokens' part of the sequence, times s.
double Experts::router_input_grad(const LayerCall& call, Tensor& dinput, const Tensor& weight_gradients,
                                  ExpertsSaved& saved) const {
  const CpuContext& context = call.context;
  const RouteSize size = route_size(call);
  const std::int64_t tokens = tokens_of(context.work), h = layer_.hidden, experts = layer_.experts;
  double loss = 0;
  Tensor added;
  if (layer_.balance_loss > 0) {
    const std::int64_t all = size.sequences * size.sequence * size.picks;
    const auto loads = integers(saved.routes, 2 * picks_of(context), size.sequences * experts);
    if (call.sequence != nullptr) count_loads(loads, integers(call.sequence->picks, 0, all), size);
    added = context.pool->take(size.sequences * experts);
    const double scale =
        layer_.balance_loss * static_cast<double>(experts) / static_cast<double>(size.sequence * size.picks);
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t e = 0; e < experts; ++e)
        loss += scale * static_cast<double>(loads[static_cast<std::size_t>(t / context.work.sequence * experts + e)]) *
                static_cast<double>(saved.probabilities.data()[t * experts + e]);
    for (std::size_t i = 0; i < loads.size(); ++i)
      added.data()[i] = call.gradient_scale * static_cast<float>(scale * static_cast<double>(loads[i]));
  }
  context.kernels.router_backward(saved.probabilities.data(), weight_gradients.data(), picks(saved),
                                  router_size(context), layer_.renormalised, added.data(), context.work.sequence);
  if (tensor_rank(context) > 0) return loss;
  Tensor part = context.pool->take(tokens * h);
  context.kernels.linear_input_grad(part.data(), saved.probabilities.data(), call.weights + router_,
                                    {tokens, h, experts});
  context.kernels.residual_add(dinput.data(), dinput.data(), part.data(), tokens, h);
  return loss;
}

void Experts::shared_input_grad(const LayerCall& call, Tensor& dinput, const float* output_gradient,
                                ExpertsSaved& saved) const {
  const CpuContext& context = call.context;
  const CpuKernelSet& kernels = context.kernels;
  const std::int64_t tokens = tokens_of(context.work), h = layer_.hidden;
  Tensor dactivation = context.pool->take(tokens * layer_.shared_ffn);
  kernels.linear_input_grad(dactivation.data(), output_gradient, call.weights + shared_down_,
                            {tokens, layer_.shared_ffn, h});
  kernels.activation_backward(shared_, saved.shared_up.data(), dactivation.data(), tokens);
  dactivation = {};
  Tensor part = context.pool->take(tokens * h);
  kernels.linear_input_grad(part.data(), saved.shared_up.data(), call.weights + shared_up_,
                            {tokens, h, shared_width()});
  kernels.residual_add(dinput.data(), dinput.data(), part.data(), tokens, h);
}

Tensor Experts::input_grad(const LayerCall& call, const Tensor& own_output_gradient, FeedForwardSaved& kept,
                           double& balance_loss) const {
  auto& saved = static_cast<ExpertsSaved&>(kept);
  const CpuContext& context = call.context;
  const AllRows output_gradient = all_rows(context, own_output_gradient, layer_.hidden);
  Tensor weight_gradients;
  Tensor dinput = expert_input_grad(call, output_gradient.rows, saved, weight_gradients);
  if (context.groups.tensor != nullptr) context.groups.tensor->run(all_reduce(weight_gradients.values()));
  balance_loss += router_input_grad(call, dinput, weight_gradients, saved);
  saved.routes = {};
  weight_gradients = {};
  if (layer_.shared_ffn > 0) shared_input_grad(call, dinput, output_gradient.rows, saved);
  return dinput;
}

void Experts::weight_grad(const LayerCall& call, const Tensor& own_output_gradient, const Tensor& own_input,
                          FeedForwardSaved& kept) const {
  auto& saved = static_cast<ExpertsSaved&>(kept);
  const CpuContext& context = call.context;
  const CpuKernelSet& kernels = context.kernels;
  const std::int64_t tokens = tokens_of(context.work), h = layer_.hidden;
  const ExpertExchange exchange = this->exchange(context, saved);
  const std::vector<std::int64_t>& by_expert = exchange.rows_of_expert();
  kernels.experts_weight_grad(call.expert_gradients + down_, saved.output_gradient.data(), saved.activation.data(),
                              by_expert, h, layer_.expert_ffn);
  kernels.experts_weight_grad(call.expert_gradients + up_, saved.up.data(), saved.input.data(), by_expert, width(), h);
  const AllRows input = all_rows(context, own_input, h);
  kernels.linear_weight_grad(call.gradients + router_, saved.probabilities.data(), input.rows,
                             {layer_.experts, h, tokens});
  if (layer_.shared_ffn == 0) return;
  kernels.linear_weight_grad(call.gradients + shared_down_, all_rows(context, own_output_gradient, h).rows,
                             saved.shared_activation.data(), {h, layer_.shared_ffn, tokens});
  kernels.linear_weight_grad(call.gradients + shared_up_, saved.shared_up.data(), input.rows,
                             {shared_width(), h, tokens});
}

}  // namespace

std::unique_ptr<FeedForward> make_experts(const TransformerLayer& layer, const LayerSeat& seat) {
  return std::make_unique<Experts>(layer, seat);
}

}}  // namespace plumb::executor
