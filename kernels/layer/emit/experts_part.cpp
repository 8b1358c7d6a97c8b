// Emits a mixture of experts, which takes the place of a block's MLP (Shazeer et al. 2017; shared experts: Dai et al.
// 2024). T tokens that each pick k of E experts make R = T k picks. The experts of a rank have as many rows if the load
// is even: with expert parallelism a rank's own rows depend on the router, and the rows of its group add up to R for
// each of its ranks. A pick that the capacity drops leaves its row unused. Tensor ranks route all tokens, and the first
// alone adds the router's gradient. Those that share experts have f/t channels of each, and bring the same rows to them.
// If fewer ranks share an expert (e < t), t/e blocks of tokens go to experts from different ranks. The sum over the
// tensor group puts the blocks together: the rows of the other tokens are zeros in it.
//
// A device makes room for the most rows that a router may send, and its kernels for routes, rows and products of
// experts are its own. On a host the kernels of the picks' weights are part of their neighbours.

#include <optional>

#include "kernels/layer/emit/block_part.h"
#include "kernels/layer/emit/expert_router.h"
#include "kernels/layer/emit/shared_expert.h"
#include "kernels/layer/expert_rows.h"

namespace plumb { inline namespace kernels {
namespace {

class Experts : public BlockPart {
 public:
  Experts(ProgramBuilder& builder, const TransformerLayer& layer)
      : layer_(layer),
        router_(builder, layer),
        local_(builder.share_of(layer).experts),
        ffn_(builder.share_of(layer).expert_ffn),
        up_width_(up_products(layer) * ffn_),
        picks_(builder.tokens() * layer.experts_per_token),
        routed_(share(builder.tokens(), token_blocks(builder)) * layer.experts_per_token),
        room_(room(builder)) {
    constexpr std::string_view kExpert = "channels of an expert";
    up_ = experts_product(builder, std::string("experts.") + up_name(layer), up_width_, layer.hidden, 1,
                          channels(layer, kExpert, ffn_));
    down_ = experts_product(builder, "experts.down", layer.hidden, ffn_, 2, {{kExpert, ffn_}});
    if (layer.shared_ffn > 0) shared_.emplace(builder, layer);
  }

  int forward(ProgramBuilder& builder, int input) override;
  int input_grad(ProgramBuilder& builder, int output_gradient) override;
  void weight_grad(ProgramBuilder& builder, int output_gradient, int input) const override;

 private:
  static bool is_spread(const ProgramBuilder& builder) { return builder.work().experts.parallel > 1; }

  /// Returns the blocks of tokens that tensor ranks bring to experts: one where all of them share their experts.
  static int token_blocks(const ProgramBuilder& builder) {
    return std::max(1, builder.work().tensor_parallel / builder.work().experts.tensor);
  }

  /// Rows for which the experts of this rank have memory.
  std::int64_t room(const ProgramBuilder& builder) const {
    const LayerWork& work = builder.work();
    if (!builder.on_device() || !is_spread(builder)) return routed_;
    const RoutedTokens tokens{
        .sequences = work.microbatch, .tokens = work.sequence / work.context_parallel, .sequence = work.whole()};
    return work.experts.parallel * most_rows_to_expert_rank(layer_, tokens, work.experts.parallel);
  }

  Product experts_product(ProgramBuilder& builder, const std::string& name, std::int64_t out, std::int64_t in,
                          int split, std::vector<DividedPiece> pieces) const {
    Product product{.name = name, .out = out, .in = in};
    product.weight = builder.parameter(name + ".weight", {local_, out, in}, split, pieces);
    builder.parameter_at(product.weight).expert = true;
    if (!layer_.expert_bias) return product;
    product.bias = split == 1 ? builder.parameter(name + ".bias", {local_, out}, 1, std::move(pieces))
                              : builder.parameter(name + ".bias", {local_, out});
    builder.parameter_at(product.bias).expert = true;
    return product;
  }

  /// Returns the products of one matrix of all local experts, whose rows are even.
  KernelCall experts_call(const ProgramBuilder& builder, std::int64_t out, std::int64_t in, GemmForm form) const {
    const KernelKind kind = builder.on_device() ? KernelKind::kExpertProducts : KernelKind::kGemm;
    const std::int64_t rows = (routed_ + local_ - 1) / local_;
    const auto number = static_cast<std::int64_t>(form);
    if (form == GemmForm::kWeightGrad) return kernel_call(kind, {out, in, rows, local_, number});
    return kernel_call(kind, {rows, out, in, local_, number});
  }
  KernelCall rows_call(std::int64_t columns) const { return kernel_call(KernelKind::kCopyRows, {routed_, columns}); }

  /// Adds a tensor with a row for each pick of the rank, or for each row of its experts.
  int of_picks(ProgramBuilder& builder, Room room, std::string name, std::int64_t columns,
               StoredType type = StoredType::kElement) const {
    return counted(builder, builder.temporary(room, std::move(name), room_, columns, type), CountedRows::kOfPicks);
  }
  int of_experts(ProgramBuilder& builder, Room room, std::string name, std::int64_t columns,
                 StoredType type = StoredType::kElement) const {
    return counted(builder, builder.temporary(room, std::move(name), room_, columns, type), CountedRows::kOfExperts);
  }
  int kept_of_experts(ProgramBuilder& builder, std::string name, std::int64_t columns) const {
    return counted(builder, builder.tensor(std::move(name), room_, columns), CountedRows::kOfExperts);
  }
  static int counted(ProgramBuilder& builder, int tensor, CountedRows rows) {
    builder.program().tensors[static_cast<std::size_t>(tensor)].counted = rows;
    return tensor;
  }

  void route(ProgramBuilder& builder, int rows);
  void add_expert_bias(ProgramBuilder& builder, const Product& product, int rows) const;
  void activate(ProgramBuilder& builder);
  int to_experts(ProgramBuilder& builder, int rows, const char* name, const char* sent_name);
  int from_experts(ProgramBuilder& builder, int by_expert);
  int expert_input_grad(ProgramBuilder& builder, int rows);
  void send_weights(ProgramBuilder& builder);
  void return_weights(ProgramBuilder& builder);
  static void all_to_all(ProgramBuilder& builder, const std::string& name, std::int64_t elements, StoredType type,
                         const Positions& reads, const Positions& writes) {
    builder.exchange(
        name, {.kind = ExchangeKind::kAllToAll, .group = ExchangeGroup::kExpert, .elements = elements, .type = type},
        reads, writes);
  }

  const TransformerLayer& layer_;
  ExpertRouter router_;
  std::optional<SharedExpert> shared_;
  std::int64_t local_;     // experts of this rank
  std::int64_t ffn_;       // channels of one expert
  std::int64_t up_width_;  // ffn_, or twice as many if gated
  std::int64_t picks_;     // R
  std::int64_t routed_;    // picks whose rows this rank brings to experts
  std::int64_t room_;
  Product up_, down_;

  Positions routes_;     // what dispatch and combination read
  Positions by_expert_;  // rows of each expert, which products read
  int received_ = -1;    // a device's places of received rows
  int expert_input_ = -1, before_ = -1, activation_ = -1;
  int weights_ = -1;           // weights of picks, by the experts' rows
  int weight_gradients_ = -1;  // [R], by the experts' rows, then by pick
  int expert_output_gradient_ = -1, before_gradient_ = -1;
};

/// Computes the picks of each token, and tells the ranks of the experts how many rows they get.
void Experts::route(ProgramBuilder& builder, int rows) {
  router_.forward(builder, rows);
  routes_ = router_.routes();
  by_expert_ = router_.by_expert();
  if (!is_spread(builder)) return;
  Positions reads_of_exchange = with(routes_, by_expert_);
  Positions received = by_expert_;
  if (builder.on_device()) {
    received_ = builder.tensor("places of received rows", room_, 1, StoredType::kInteger);
    by_expert_ = with({builder.tensor("bounds of received rows", local_ + 1, 1, StoredType::kInteger)}, by_expert_);
    received = {received_, by_expert_.front()};
  }
  received.push_back(builder.tensor("rows for each rank", 2, layer_.experts, StoredType::kInteger));
  builder.exchange("rows for each rank",
                   {.kind = ExchangeKind::kAllToAll,
                    .group = ExchangeGroup::kExpert,
                    .elements = layer_.experts,
                    .type = StoredType::kInteger},
                   reads_of_exchange, received);
}

/// Puts a row of each pick's token at the pick's place, and exchanges them. Returns the rows by expert.
int Experts::to_experts(ProgramBuilder& builder, int rows, const char* name, const char* sent_name) {
  const std::int64_t h = layer_.hidden;
  const int by_expert = kept_of_experts(builder, name, h);
  if (!is_spread(builder)) {
    builder.kernel(name, rows_call(h), with({rows}, routes_), {by_expert});
    return by_expert;
  }
  const int sent = of_picks(builder, Room::kExpertRows, sent_name, h);
  builder.kernel(name, rows_call(h), with({rows}, routes_), {sent});
  Positions reads = {sent}, writes = {by_expert};
  if (builder.on_device()) {
    reads.push_back(received_);
    writes.push_back(builder.temporary(Room::kTravelling, std::string(name) + " by rank", room_, h));
  }
  all_to_all(builder, sent_name, routed_ * h, StoredType::kElement, reads, writes);
  return by_expert;
}

/// Exchanges rows by expert back to the ranks of their tokens. On a device they replace the rows that were sent.
int Experts::from_experts(ProgramBuilder& builder, int by_expert) {
  if (!is_spread(builder)) return by_expert;
  const std::string name = builder.at(by_expert).name + " returned";
  const int travelling = of_picks(builder, Room::kTravelling, name, layer_.hidden);
  const int returned = builder.on_device() ? by_expert : travelling;
  Positions reads = {by_expert}, writes = {travelling};
  if (builder.on_device()) {
    reads.push_back(received_);
    writes.push_back(by_expert);
  }
  all_to_all(builder, name, routed_ * layer_.hidden, StoredType::kElement, reads, writes);
  return returned;
}

void Experts::add_expert_bias(ProgramBuilder& builder, const Product& product, int rows) const {
  if (product.bias < 0) return;
  LayerStep& step =
      builder.kernel(product.name + " bias", kernel_call(KernelKind::kBiasForward, {routed_, product.out}),
                     with({rows}, by_expert_), {rows});
  step.parameters = {product.bias};
  step.first_rank_only = builder.program().parameters[static_cast<std::size_t>(product.bias)].split_dimension < 0;
}

void Experts::activate(ProgramBuilder& builder) {
  const std::int64_t gated = is_gated(layer_);
  activation_ = kept_of_experts(builder, "activation", ffn_);
  builder
      .kernel("activation", kernel_call(KernelKind::kActivationForward, {routed_, ffn_, gated}), {before_},
              {activation_})
      .cheap = true;
  if (shared_) shared_->activate(builder);
}

int Experts::forward(ProgramBuilder& builder, int input) {
  const std::int64_t tokens = builder.tokens(), h = layer_.hidden;
  const int rows = builder.gathered(input);
  route(builder, rows);
  expert_input_ = to_experts(builder, rows, "expert input", "rows to experts");
  before_ = kept_of_experts(builder, "up", up_width_);
  builder
      .kernel(up_.name, experts_call(builder, up_width_, h, GemmForm::kForward), with({expert_input_}, by_expert_),
              {before_})
      .parameters = {up_.weight};
  add_expert_bias(builder, up_, before_);
  if (shared_) shared_->multiply_up(builder, rows);
  activate(builder);
  const int made = of_experts(builder, Room::kExpertRows, "expert output", h);
  builder
      .kernel(down_.name, experts_call(builder, h, ffn_, GemmForm::kForward), with({activation_}, by_expert_), {made})
      .parameters = {down_.weight};
  add_expert_bias(builder, down_, made);
  const int returned = from_experts(builder, made);
  const int branch = builder.temporary(Room::kRows, "feed-forward branch", tokens, h);
  Positions writes = {branch};
  if (!builder.on_device()) writes.push_back(builder.tensor("pick weights", picks_, 1, StoredType::kSingle));
  builder.kernel("experts joined", rows_call(h), with({returned, router_.probabilities()}, routes_), writes);
  if (shared_) shared_->add_output(builder, branch);
  return builder.summed(branch);
}

int Experts::input_grad(ProgramBuilder& builder, int output_gradient) {
  const int rows = builder.gathered(output_gradient, Room::kGathered);
  const int dinput = expert_input_grad(builder, rows);
  if (builder.work().tensor_parallel > 1)
    builder.exchange("gradients of pick weights summed",
                     {.kind = ExchangeKind::kAllReduce,
                      .group = ExchangeGroup::kTensor,
                      .elements = picks_,
                      .type = StoredType::kSingle},
                     {weight_gradients_}, {weight_gradients_});
  router_.input_grad(builder, dinput, weight_gradients_);
  if (shared_) shared_->input_grad(builder, dinput, rows);
  builder.enter(Section::kFeedForward);
  return builder.summed(dinput);
}

/// Sends the weights of picks along with the gradients of their outputs.
void Experts::send_weights(ProgramBuilder& builder) {
  if (!is_spread(builder)) {
    weights_ = builder.on_device() ? routes_[1]
                                   : of_experts(builder, Room::kReceived, "weights by expert", 1, StoredType::kSingle);
    return;
  }
  const int sent = of_picks(builder, Room::kWords, "weights to experts", 1, StoredType::kSingle);
  weights_ = of_experts(builder, Room::kReceived, "weights by expert", 1, StoredType::kSingle);
  all_to_all(builder, "weights to experts", routed_, StoredType::kSingle, with({router_.probabilities()}, routes_),
             {sent, weights_});
}

/// Brings the gradients of the picks' weights back to the ranks of their tokens.
void Experts::return_weights(ProgramBuilder& builder) {
  if (!is_spread(builder)) return;
  const int back = of_picks(builder, Room::kReceived, "gradients of pick weights returned", 1, StoredType::kSingle);
  all_to_all(builder, "gradients of pick weights returned", routed_, StoredType::kSingle, {weight_gradients_}, {back});
  weight_gradients_ = back;
}

/// Returns the gradient [T, h] of the experts' input by token.
int Experts::expert_input_grad(ProgramBuilder& builder, int rows) {
  const std::int64_t h = layer_.hidden, gated = is_gated(layer_);
  const bool on_device = builder.on_device();
  const int by_pick = on_device ? builder.tensor("gradients of pick weights", picks_, 1, StoredType::kSingle) : -1;
  builder.enter(Section::kExpertRows);
  send_weights(builder);
  expert_output_gradient_ = to_experts(builder, rows, "expert output gradient", "gradients to experts");
  if (!on_device && !is_spread(builder)) builder.program().steps.back().writes.push_back(weights_);

  const int gradient = kept_of_experts(builder, "activation gradient", ffn_);
  const bool counts_apart = !on_device || is_spread(builder);
  weight_gradients_ = by_pick;
  if (counts_apart)
    weight_gradients_ = of_experts(builder, Room::kWords, "gradients of weights by expert", 1, StoredType::kSingle);
  LayerStep& product = builder.kernel(down_.name, experts_call(builder, ffn_, h, GemmForm::kInputGrad),
                                      with({expert_output_gradient_}, by_expert_), {gradient});
  product.parameters = {down_.weight};
  if (on_device) {
    const int places = is_spread(builder) ? received_ : routes_[2];
    LayerStep& weighed = builder.kernel("picks weighed", kernel_call(KernelKind::kWeighPicks, {routed_, ffn_, h}),
                                        {gradient, expert_output_gradient_, activation_, weights_, places},
                                        {gradient, expert_output_gradient_, weight_gradients_});
    if (down_.bias >= 0) {  // part of a pick's output, and so of its weight
      weighed.reads.append(by_expert_);
      weighed.parameters = {down_.bias};
    }
  } else {
    product.reads.append(Positions{activation_, weights_});
    product.writes.append(Positions{expert_output_gradient_, weight_gradients_});
    if (down_.bias >= 0) product.parameters.push_back(down_.bias);  // the same
  }
  before_gradient_ = builder.in_place_of("up gradient", before_);
  builder.kernel("activation", kernel_call(KernelKind::kActivationBackward, {routed_, ffn_, gated}),
                 {before_, gradient}, {before_gradient_});
  const int made = of_experts(builder, Room::kExpertRows, "expert input gradient", h);
  builder
      .kernel(up_.name, experts_call(builder, h, up_width_, GemmForm::kInputGrad), with({before_gradient_}, by_expert_),
              {made})
      .parameters = {up_.weight};
  const int returned = from_experts(builder, made);
  return_weights(builder);
  const int dinput = builder.temporary(Room::kRows, "norm2 output gradient", builder.tokens(), h);
  Positions of_rows = with({returned}, routes_), writes = {dinput};
  if (counts_apart) {
    of_rows.push_back(weight_gradients_);
    weight_gradients_ =
        on_device ? by_pick : builder.tensor("gradients of pick weights", picks_, 1, StoredType::kSingle);
    writes.push_back(weight_gradients_);
  }
  builder.kernel("gradients joined", rows_call(h), of_rows, writes);
  builder.enter(Section::kFeedForward);
  return dinput;
}

void Experts::weight_grad(ProgramBuilder& builder, int output_gradient, int input) const {
  const std::int64_t h = layer_.hidden;
  const auto bias_gradient = [&](const Product& product, int dy) {
    if (product.bias < 0) return;
    builder
        .kernel(product.name + " bias", kernel_call(KernelKind::kBiasBackward, {routed_, product.out}),
                with({dy}, by_expert_), {})
        .gradients = {product.bias};
  };
  builder
      .kernel(down_.name, experts_call(builder, h, ffn_, GemmForm::kWeightGrad),
              with({expert_output_gradient_, activation_}, by_expert_), {})
      .gradients = {down_.weight};
  bias_gradient(down_, expert_output_gradient_);
  builder
      .kernel(up_.name, experts_call(builder, up_width_, h, GemmForm::kWeightGrad),
              with({before_gradient_, expert_input_}, by_expert_), {})
      .gradients = {up_.weight};
  bias_gradient(up_, before_gradient_);
  const int rows = builder.gathered(input);
  router_.weight_grad(builder, rows);
  if (shared_) shared_->weight_grad(builder, builder.gathered(output_gradient, Room::kGathered), rows);
}

}  // namespace

std::unique_ptr<BlockPart> experts_part(ProgramBuilder& builder, const TransformerLayer& layer) {
  return std::make_unique<Experts>(builder, layer);
}

}}  // namespace plumb::kernels
