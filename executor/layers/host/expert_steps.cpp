#include "executor/layers/host/expert_steps.h"

#include <algorithm>
#include <cassert>
#include <variant>

#include "executor/layers/host/expert_exchange.h"
#include "executor/layers/host/expert_routes.h"

namespace plumb { inline namespace executor {
namespace {

using Integers = std::span<std::int32_t>;

Integers integers(Tensor& tensor, std::int64_t first, std::int64_t count) {
  return {tensor.tokens() + first, static_cast<std::size_t>(count)};
}

/// The mixture of a step: its sizes, and what its router has decided.
class Mixture {
 public:
  explicit Mixture(const HostStep& of) : of_(of), block_(std::get<TransformerLayer>(of.program.share())) {
    const auto forward = steps_of(of.program.steps(), Pass::kForward);
    const auto router =
        std::ranges::find_if(forward, [](const LayerStep& step) { return step.is(KernelKind::kRouter); });
    assert(router != forward.end());
    routes_ = router->writes[1];  // behind the probabilities
    rows_ = router->writes[2];
  }

  const TransformerLayer& block() const { return block_; }
  std::int64_t tokens() const { return tokens_in(of_.context().work); }
  std::int64_t picked() const { return tokens() * block_.experts_per_token; }
  /// Return the tokens that this rank brings to experts, and the most rows that they make.
  TokenRange routed_tokens() const { return of_.context().seat.routed_tokens(tokens()); }
  std::int64_t routed() const { return routed_tokens().count * block_.experts_per_token; }
  bool is_spread() const { return of_.context().groups.expert != nullptr; }

  RouterSize router_size() const {
    return {.tokens = tokens(),
            .experts = block_.experts,
            .picks = block_.experts_per_token,
            .sigmoid = block_.router == RouterKind::kSigmoid,
            .expert_groups = block_.expert_groups,
            .groups_per_token = block_.groups_per_token};
  }
  CopyRowsSize copy_size() const { return {tokens(), block_.experts_per_token, block_.hidden}; }
  RouteSize route_size() const {
    const std::int64_t sequence = of_.call.place.sequence;
    return {.sequences = of_.context().work.microbatch,
            .sequence = sequence,
            .experts = block_.experts,
            .picks = block_.experts_per_token,
            .capacity = expert_capacity(block_, sequence)};
  }

  Integers picks() const { return integers(of_.saved.at(routes_), 0, picked()); }
  Integers places() const { return integers(of_.saved.at(routes_), picked(), picked()); }
  Integers loads() const { return integers(of_.saved.at(routes_), 2 * picked(), lists()); }
  Integers sent() const { return integers(of_.saved.at(rows_), 0, block_.experts); }
  Integers received() const { return integers(of_.saved.at(rows_), block_.experts, block_.experts); }

  ExpertExchange exchange() const {
    // Own experts have at most the picks of all ranks, and a token picks each expert at most once.
    const LayerSeat& seat = of_.context().seat;
    const std::int64_t ranks = seat.experts.ranks, own = block_.experts / ranks;
    const std::int64_t each = share(tokens(), seat.tensor.ranks / seat.experts.tensor.ranks);
    const std::int64_t most = ranks * each * std::min(own, block_.experts_per_token);
    return {of_.context(), sent(), received(), {routed(), std::max(routed(), most)}};
  }
  /// Returns the rows for which the experts take memory. With a capacity, rows of dropped picks stay unused, so that
  /// their number is known before.
  std::int64_t held_rows(const ExpertExchange& exchange) const {
    const bool is_exact = block_.capacity_factor == 0 && is_spread();
    return is_exact ? exchange.expert_rows() : std::max(exchange.expert_rows(), routed());
  }

 private:
  std::int64_t lists() const { return of_.context().work.microbatch * block_.experts; }

  const HostStep& of_;
  const TransformerLayer& block_;
  int routes_ = -1, rows_ = -1;  // tensors
};

/// Numbers the picks with rows, from the picks of whole sequences as far as they are known.
void place(const HostStep& of, const Mixture& mixture, std::span<const std::int32_t> whole) {
  const RouteSize size = mixture.route_size();
  const ContextTokens own{of.call.place.slice, of.call.place.second_slice};
  place_picks(mixture.places(), mixture.sent(), whole, own, mixture.routed_tokens(), size);
  count_loads(mixture.loads(), whole, size);
  if (!mixture.is_spread()) std::ranges::copy(mixture.sent(), mixture.received().begin());
}

/// Returns the picks of whole sequences, all unknown at first; those of slices stay with their sequences.
Integers whole_picks(const HostStep& of, const Mixture& mixture, Tensor& of_call) {
  const RouteSize size = mixture.route_size();
  const std::int64_t all = size.sequences * size.sequence * size.picks;
  Tensor& whole = of.call.sequence == nullptr ? of_call : of.call.sequence->picks;
  if (whole.empty()) {
    whole = of.context().pool->take(all);
    std::ranges::fill(integers(whole, 0, all), -1);
  }
  return integers(whole, 0, all);
}

/// Makes picks, places and loads from scores. In a context group share_picks() goes on.
void route(const HostStep& of) {
  const Mixture mixture(of);
  of.kernels().router_forward(of.written(0), mixture.picks().data(), mixture.router_size(), of.weight(0));
  if (of.context().groups.context != nullptr) return;
  if (of.call.sequence == nullptr) return place(of, mixture, mixture.picks());
  Tensor none;
  const Integers whole = whole_picks(of, mixture, none);
  spread_picks(whole, mixture.picks(), {of.call.place.slice, of.call.place.second_slice}, mixture.route_size());
  place(of, mixture, whole);
}

/// Turns probabilities into the gradient of the scores, and adds to the load-balancing loss. That of a sequence is
/// balance_loss * E * sum_e f_e P_e, with an expert's share f_e of the picks and its mean probability P_e (Fedus et al.
/// 2021, by sequence as in DeepSeek-AI 2024). Here it is summed over the own tokens' part of the sequence, times s.
void route_backward(const HostStep& of) {
  const Mixture mixture(of);
  const TransformerLayer& block = mixture.block();
  const RouteSize size = mixture.route_size();
  const std::int64_t sequence = of.context().work.sequence, experts = block.experts;
  float* const probabilities = of.written(0);
  float* added = nullptr;
  if (block.balance_loss > 0) {
    const Integers loads = mixture.loads();
    Tensor none;
    if (of.call.sequence != nullptr) count_loads(loads, whole_picks(of, mixture, none), size);
    added = of.written(1);
    const double scale =
        block.balance_loss * static_cast<double>(experts) / static_cast<double>(size.sequence * size.picks);
    for (std::int64_t t = 0; t < mixture.tokens(); ++t)
      for (std::int64_t e = 0; e < experts; ++e)
        of.saved.balance_loss += scale *
                                 static_cast<double>(loads[static_cast<std::size_t>(t / sequence * experts + e)]) *
                                 static_cast<double>(probabilities[t * experts + e]);
    for (std::size_t i = 0; i < loads.size(); ++i)
      added[i] = of.call.gradient_scale * static_cast<float>(scale * static_cast<double>(loads[i]));
  }
  if (block.selection_bias) add_excess_picks(of.gradient(0), mixture.picks().data(), mixture.router_size());
  of.kernels().router_backward(probabilities, of.read(1), mixture.picks().data(), mixture.router_size(),
                               block.renormalised, added, sequence);
}

/// Writes the weight of each pick that was not dropped at its place.
void place_weights(const HostStep& of, const Mixture& mixture, const float* probabilities, float* placed) {
  const std::int64_t picked = mixture.picked();
  Tensor by_pick = of.context().pool->take(picked);
  pick_weights(by_pick.data(), probabilities, mixture.picks().data(), mixture.router_size(),
               mixture.block().renormalised);
  const Integers places = mixture.places();
  for (std::int64_t pick = 0; pick < picked; ++pick)
    if (const std::int32_t to = places[static_cast<std::size_t>(pick)]; to >= 0) placed[to] = by_pick.data()[pick];
}

/// Returns the tensor of the router's probabilities.
float* probabilities_of(const HostStep& of) {
  for (const LayerStep& step : steps_of(of.program.steps(), Pass::kForward))
    if (step.is(KernelKind::kRouter)) return of.saved.at(step.writes[0]).data();
  assert(!"a mixture has a router");
  return nullptr;
}

/// Places tokens' rows by their experts, in the backward with the weights of the picks unless these are sent; or sums
/// rows by token, in the forward by the picks' weights, in the backward with the gradients of these.
void copy_rows(const HostStep& of) {
  const Mixture mixture(of);
  const std::int32_t* const places = mixture.places().data();
  const bool has_second = of.step.writes.size() > 1;
  if (of.program.tensor(of.step.writes[0]).counted != CountedRows::kNone) {
    of.kernels().place_rows(of.written(0), of.read(0), places, mixture.copy_size());
    if (has_second) place_weights(of, mixture, probabilities_of(of), of.written(1));
    return;
  }
  const float* weights = nullptr;
  if (of.is_forward()) {
    pick_weights(of.written(1), of.read(1), mixture.picks().data(), mixture.router_size(),
                 mixture.block().renormalised);
    weights = of.written(1);
  }
  of.kernels().sum_placed_rows(of.written(0), of.read(0), places, weights, mixture.copy_size());
  if (of.is_forward()) return;
  const float* const by_row = of.read(of.step.reads.size() - 1);
  for (std::int64_t pick = 0; pick < mixture.picked(); ++pick)
    of.written(1)[pick] = places[pick] < 0 ? 0.0F : by_row[places[pick]];
}

float dot(const float* a, const float* b, std::int64_t count) {
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/// Multiplies the gradients of picks' activations and outputs by their weights, after the gradients of these. The first
/// of the ranks that share an expert adds the biases of outputs, and what the weights' gradients have of them. Reads {gradient of the output,
/// rows of each expert, activation, weights}, writes {gradient of the activation, of the output, of the weights}.
void weigh_rows(const HostStep& of, const std::vector<std::int64_t>& rows_of_expert) {
  const std::int64_t ffn = of.program.tensor(of.step.writes[0]).columns;
  const std::int64_t h = of.program.tensor(of.step.writes[1]).columns;
  constexpr std::size_t kBias = 1;  // behind the weight
  const float* bias = of.context().seat.experts.tensor.rank == 0 ? of.weight(kBias) : nullptr;
  std::int64_t row = 0;
  for (const std::int64_t count : rows_of_expert) {
    for (const std::int64_t end = row + count; row < end; ++row) {
      const float weight = of.read(3)[row];
      float* const output = of.written(1) + row * h;
      float* const gradient = of.written(0) + row * ffn;
      const float through_bias = bias == nullptr ? 0.0F : dot(output, bias, h);
      of.written(2)[row] = dot(gradient, of.read(2) + row * ffn, ffn) + through_bias;
      for (std::int64_t c = 0; c < ffn; ++c) gradient[c] *= weight;
      for (std::int64_t c = 0; c < h; ++c) output[c] *= weight;
    }
    if (bias != nullptr) bias += h;
  }
}

void add_expert_bias(const HostStep& of) {
  const ExpertExchange exchange = Mixture(of).exchange();
  if (of.step.is(KernelKind::kBiasForward))
    return of.kernels().experts_bias_forward(of.written(0), of.weight(0), exchange.rows_of_expert(), of.columns());
  of.kernels().experts_bias_backward(of.gradient(0), of.read(0), exchange.rows_of_expert(), of.columns());
}

void multiply_experts(const HostStep& of) {
  const Mixture mixture(of);
  const ExpertExchange exchange = mixture.exchange();
  const std::vector<std::int64_t>& rows = exchange.rows_of_expert();
  switch (static_cast<GemmForm>(of.shape()[4])) {
    case GemmForm::kInputGrad:
      of.kernels().experts_input_grad(of.written(0), of.read(0), of.weight(0), rows, of.shape()[1], of.shape()[2]);
      if (of.step.writes.size() > 1) weigh_rows(of, rows);
      return;
    case GemmForm::kWeightGrad:
      return of.kernels().experts_weight_grad(of.gradient(0), of.read(0), of.read(1), rows, of.shape()[0],
                                              of.shape()[1]);
    default:
      return of.kernels().experts_forward(of.written(0), of.read(0), of.weight(0), rows, of.shape()[1], of.shape()[2]);
  }
}

void activate_experts(const HostStep& of) {
  const MlpActivation activation{.rows = Mixture(of).exchange().expert_rows(),
                                 .columns = of.columns(),
                                 .gated = of.shape()[2] != 0,
                                 .exact_gelu = has_exact_gelu(of.program.layer())};
  if (of.is_forward()) return of.kernels().activation_forward(of.written(0), of.read(0), activation);
  of.kernels().activation_backward(of.written(0), of.read(1), activation);
}

}  // namespace

bool is_of_experts(const HostStep& of) {
  const LayerStep& step = of.step;
  if (step.is(KernelKind::kRouter) || step.is(KernelKind::kCopyRows)) return true;
  if (step.is(KernelKind::kGemm)) {
    const Positions& weights = step.parameters.empty() ? step.gradients : step.parameters;
    return of.program.is_of_experts(weights.front());
  }
  return !step.reads.empty() && of.program.tensor(step.reads[0]).counted != CountedRows::kNone;
}

void run_expert_kernel(const HostStep& of) {
  switch (of.step.call()->kind) {
    case KernelKind::kRouter:
      return of.is_forward() ? route(of) : route_backward(of);
    case KernelKind::kCopyRows:
      return copy_rows(of);
    case KernelKind::kGemm:
      return multiply_experts(of);
    case KernelKind::kBiasForward:
    case KernelKind::kBiasBackward:
      return add_expert_bias(of);
    default:
      return activate_experts(of);
  }
}

void share_picks(const HostStep& of) {
  const Mixture mixture(of);
  const CpuContext& context = of.context();
  const std::int64_t own = mixture.picked();
  Tensor& gathered = of.tensor_written(0);
  std::ranges::copy(mixture.picks(), gathered.tokens() + context.seat.context.rank * own);
  context.groups.context->run(all_gather(gathered.values()));
  Tensor of_call;
  const Integers whole = whole_picks(of, mixture, of_call);
  ContextSeat seat = context.seat.context;
  const TokenRange shared{context.first_token, seat.ranks * context.work.sequence};
  for (seat.rank = 0; seat.rank < seat.ranks; ++seat.rank)
    spread_picks(whole, integers(gathered, seat.rank * own, own), context_tokens(shared, seat), mixture.route_size());
  place(of, mixture, whole);
}

void run_expert_exchange(const HostStep& of) {
  const Mixture mixture(of);
  const std::int64_t columns = of.program.tensor(of.step.writes[0]).columns;
  if (of.step.exchange()->type == StoredType::kInteger)
    return ExpertExchange::share_counts(of.context(), mixture.received(), mixture.sent());
  const ExpertExchange exchange = mixture.exchange();
  if (of.program.tensor(of.step.writes[0]).counted == CountedRows::kOfExperts)
    return exchange.to_experts(of.written(0), of.read(0), columns);
  const bool sends_weights = of.step.writes.size() > 1;  // {weights by pick, weights by expert}
  if (!sends_weights) return exchange.from_experts(of.written(0), of.read(0), columns);
  place_weights(of, mixture, of.read(0), of.written(0));
  exchange.to_experts(of.written(1), of.written(0), columns);
}

Tensor take_counted(const HostStep& of, const LayerTensor& tensor) {
  const Mixture mixture(of);
  const ExpertExchange exchange = mixture.exchange();
  if (tensor.counted == CountedRows::kOfPicks) return exchange.take_sent(tensor.columns);
  return exchange.take_rows(mixture.held_rows(exchange), tensor.columns);
}

}}  // namespace plumb::executor
