#include "executor/nccl/layer_exchanges.h"

#include <algorithm>
#include <variant>

#include "executor/division/tensor_division.h"
#include "kernels/layer/expert_rows.h"

namespace plumb { inline namespace executor {
namespace {

/// The exchanges of one pass. Its functions have the names of executor/cpu/layers/tensor_parallel.h.
class PassExchanges {
 public:
  explicit PassExchanges(const ExchangeShape& shape) : shape_(shape), rows_(shape.sequences * shape.tokens) {}

  std::int64_t rows() const { return rows_; }

  void all_rows(std::int64_t columns) {
    if (shape_.tensor > 1 && shape_.sequence_parallel)
      add({.op = CollectiveKind::kAllGather, .elements = rows_ * columns});
  }
  void sum_rows(std::int64_t columns) {
    if (shape_.tensor > 1)
      add({.op = shape_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
           .elements = rows_ * columns});
  }
  void add_replicated(std::int64_t count) {
    if (shape_.tensor > 1 && shape_.sequence_parallel) add({.elements = count});
  }
  void all_reduce(std::int64_t elements) {
    if (shape_.tensor > 1) add({.elements = elements});
  }
  /// Sums the gradients of shared kv heads; each set of sharers has columns of its own.
  void sum_shared_heads(const TransformerLayer& own, int kv_sharers) {
    all_reduce(shape_.tensor / std::max(1, kv_sharers) * rows_ * 2 * own.kv_heads * own.head_size);
  }
  void all_gather(std::int64_t elements) {
    if (shape_.tensor > 1) add({.op = CollectiveKind::kAllGather, .elements = elements});
  }

  void attention(const TransformerLayer& own, bool is_backward) {
    const int n = shape_.context;
    if (n == 1) return;
    const std::int64_t heads = own.heads * own.head_size, keys = own.kv_heads * own.head_size;
    if (shape_.attention == ContextAttention::kUlysses) {
      const auto exchange = [&](std::int64_t columns) {
        add({.group = ExchangeGroup::kContext, .op = CollectiveKind::kAllToAll, .elements = rows_ * columns});
      };
      exchange(is_backward ? heads : heads + 2 * keys);
      exchange(heads);
      if (is_backward) exchange(heads + 2 * keys);
      return;
    }
    const LayerExchange block{.group = ExchangeGroup::kContext,
                              .op = CollectiveKind::kShift,
                              .elements = shape_.sequences * shape_.block_tokens * 2 * keys};
    for (int step = 0; step < n; ++step) {
      if (step + 1 < n) add(block).beside = true;
      if (is_backward && step > 0) add(block).joined = step + 1 < n;
      add({.is_piece = true});
    }
    if (is_backward) add(block);
  }

  /// Gathers the router's picks of whole sequences, and exchanges the number of rows for each expert.
  void route(const TransformerLayer& own) {
    if (shape_.context > 1)
      add({.group = ExchangeGroup::kContext,
           .op = CollectiveKind::kAllGather,
           .elements = shape_.context * rows_ * own.experts_per_token});
    if (shape_.expert > 1)
      add({.group = ExchangeGroup::kExpert, .op = CollectiveKind::kAllToAll, .elements = own.experts});
  }

  /// Brings rows to the experts or back; each rank gets as many as there can be.
  void expert_rows(const TransformerLayer& own, std::int64_t columns) {
    if (shape_.expert == 1) return;
    const std::int64_t to_each = most_rows_to_expert_rank(
        own, {.sequences = shape_.sequences, .tokens = shape_.tokens, .sequence = shape_.sequence}, shape_.expert);
    add({.group = ExchangeGroup::kExpert,
         .op = CollectiveKind::kAllToAll,
         .elements = shape_.expert * to_each * columns,
         .is_bound = true});
  }

  std::vector<LayerExchange> take() { return std::move(exchanges_); }

 private:
  LayerExchange& add(const LayerExchange& exchange) { return exchanges_.emplace_back(exchange); }

  const ExchangeShape& shape_;
  const std::int64_t rows_;  // T
  std::vector<LayerExchange> exchanges_;
};

std::int64_t norm_elements(NormKind norm, std::int64_t hidden) {
  return norm == NormKind::kLayerNorm ? 2 * hidden : hidden;
}

void forward(const TransformerLayer& own, PassExchanges& pass) {
  pass.all_rows(own.hidden);
  pass.attention(own, false);
  pass.sum_rows(own.hidden);
  pass.all_rows(own.hidden);
  if (own.experts > 0) {
    pass.route(own);
    pass.expert_rows(own, own.hidden);
    pass.expert_rows(own, own.hidden);
  }
  pass.sum_rows(own.hidden);
}

/// kv_sharers: number of neighbouring ranks that have the same kv heads.
void input_grad(const TransformerLayer& own, int kv_sharers, PassExchanges& pass) {
  pass.all_rows(own.hidden);
  if (own.experts > 0) {
    for (const std::int64_t columns : {std::int64_t{1}, own.hidden, own.hidden, std::int64_t{1}})
      pass.expert_rows(own, columns);
    pass.all_reduce(pass.rows() * own.experts_per_token);
  }
  pass.sum_rows(own.hidden);
  pass.add_replicated(norm_elements(own.norm, own.hidden));
  pass.all_rows(own.hidden);
  pass.attention(own, true);
  if (kv_sharers > 1) pass.sum_shared_heads(own, kv_sharers);
  pass.sum_rows(own.hidden);
  pass.add_replicated(norm_elements(own.norm, own.hidden));
}

void weight_grad(const TransformerLayer& own, PassExchanges& pass) {
  pass.all_rows(own.hidden);
  if (own.experts > 0) {
    if (own.shared_ffn > 0) pass.all_rows(own.hidden);
  } else {
    if (own.linear_bias) pass.add_replicated(own.hidden);
    pass.all_rows(own.hidden);
  }
  pass.all_rows(own.hidden);
  if (own.linear_bias) pass.add_replicated(own.hidden);
  pass.all_rows(own.hidden);
}

void exchanges_of(const TransformerLayer& own, int kv_sharers, Pass pass, PassExchanges& exchanges) {
  if (pass == Pass::kForward) forward(own, exchanges);
  if (pass == Pass::kInputGrad) input_grad(own, kv_sharers, exchanges);
  if (pass == Pass::kWeightGrad) weight_grad(own, exchanges);
}

void exchanges_of(const EmbeddingLayer& own, Pass pass, PassExchanges& exchanges) {
  if (pass == Pass::kForward) exchanges.sum_rows(own.hidden);
  if (pass == Pass::kWeightGrad) exchanges.all_rows(own.hidden);
}

void exchanges_of(const HeadLayer& own, int tensor, Pass pass, PassExchanges& exchanges) {
  if (pass == Pass::kForward) {
    exchanges.all_rows(own.hidden);
    exchanges.all_gather(tensor * 3 * exchanges.rows());
  }
  if (pass == Pass::kInputGrad) {
    exchanges.sum_rows(own.hidden);
    exchanges.add_replicated(norm_elements(own.norm, own.hidden));
  }
  if (pass == Pass::kWeightGrad) exchanges.all_rows(own.hidden);
}

}  // namespace

std::vector<LayerExchange> layer_exchanges(const Layer& layer, const ExchangeShape& shape, Pass pass) {
  if (shape.tensor == 1 && shape.context == 1 && shape.expert == 1) return {};
  PassExchanges exchanges(shape);
  const Layer own = divide_layer(layer, shape.tensor);
  if (const auto* block = std::get_if<TransformerLayer>(&own))
    exchanges_of(*block, kv_sharers(layer, shape.tensor), pass, exchanges);
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&own)) exchanges_of(*embedding, pass, exchanges);
  if (const auto* head = std::get_if<HeadLayer>(&own)) exchanges_of(*head, shape.tensor, pass, exchanges);
  return exchanges.take();
}

}}  // namespace plumb::executor
