#include "executor/spec/division/tensor_division.h"

#include <algorithm>
#include <cassert>
#include <variant>

#include <fmt/format.h>

namespace plumb { inline namespace executor {
namespace {

/// Rows (or columns) of the divided dimension: [local, local + count) of the share are [whole, whole + count) of the
/// whole.
struct DimensionRun {
  std::int64_t local = 0;
  std::int64_t whole = 0;
  std::int64_t count = 0;
  bool is_replica = false;
};

int sharers_in(const DividedPiece& piece, int ranks) {
  return piece.shared ? sharers_of(piece.units, ranks) : 1;
}

std::vector<DimensionRun> dimension_runs(const ParameterTensor& tensor, const TensorSeat& seat) {
  if (tensor.pieces.empty()) {
    const std::int64_t size = tensor.shape[static_cast<std::size_t>(tensor.split_dimension)];
    const std::int64_t each = share(size, seat.ranks), first = std::min(seat.rank * each, size);
    return {{0, first, std::min(each, size - first)}};
  }
  std::vector<DimensionRun> runs;
  std::int64_t local = 0, whole = 0;
  for (const DividedPiece& piece : tensor.pieces) {
    const int sharers = sharers_in(piece, seat.ranks);
    const std::int64_t count = piece.size() * sharers / seat.ranks;
    runs.push_back({local, whole + seat.rank / sharers * count, count, seat.rank % sharers > 0});
    local += count;
    whole += piece.size();
  }
  return runs;
}

}  // namespace

std::string why_not_divisible(const Layer& layer, int ranks, int expert_tensor) {
  if (ranks == 1) return {};
  if (std::holds_alternative<EmbeddingLayer>(layer) || std::holds_alternative<HeadLayer>(layer)) {
    const std::int64_t vocab = std::visit(
        [](const auto& kind) -> std::int64_t {
          if constexpr (requires { kind.vocab; })
            return kind.vocab;
          else
            return 0;
        },
        layer);
    return vocab >= ranks ? "" : fmt::format("a vocabulary of {} tokens is less than {} tensor ranks", vocab, ranks);
  }
  const auto* block = std::get_if<TransformerLayer>(&layer);
  if (block != nullptr && block->heads > 0 && block->query_key_norms == QueryKeyNorms::kAllHeads)
    return "a norm over the channels of all heads needs sums over tensor ranks, which are priced and which Plumb does "
           "not run; set tensor to 1, or norm each head by itself";
  bool is_divided = false;
  for (const ParameterTensor& tensor : layer_parameters(layer))
    for (const DividedPiece& piece : tensor.pieces) {
      is_divided = true;
      const int sharers = tensor.expert ? expert_tensor : ranks;
      if (piece.units % sharers != 0 && sharers_in(piece, sharers) == 1)
        return fmt::format("{} {} cannot be divided over {} tensor ranks; choose a tensor degree that divides them",
                           piece.units, piece.unit, sharers);
    }
  if (!is_divided)
    return fmt::format("a layer of kind {} is not divided over tensor ranks; set tensor to 1", layer_kind_name(layer));
  return {};
}

int kv_sharers(const Layer& layer, int ranks) {
  const auto* block = std::get_if<TransformerLayer>(&layer);
  return block == nullptr || block->heads == 0 ? 1 : sharers_of(block->kv_heads, ranks);
}

std::string why_not_spread(const Layer& layer, int ranks) {
  const auto* block = std::get_if<TransformerLayer>(&layer);
  if (block == nullptr || block->experts % ranks == 0) return {};
  return fmt::format("{} experts cannot be spread over {} expert ranks; choose an expert degree that divides them",
                     block->experts, ranks);
}

Layer divide_layer(const Layer& layer, int ranks, int expert_tensor) {
  assert(why_not_divisible(layer, ranks, expert_tensor).empty());
  if (const auto* block = std::get_if<TransformerLayer>(&layer))
    return rank_share(*block, ranks, {.tensor = expert_tensor});
  return std::visit(
      [&](const auto& kind) -> Layer {
        if constexpr (requires { rank_share(kind, ranks); })
          return rank_share(kind, ranks);
        else
          return kind;
      },
      layer);
}

std::vector<Layer> divide_layers(const std::vector<Layer>& layers, int ranks, int expert_tensor) {
  std::vector<Layer> shares;
  for (const Layer& layer : layers) shares.push_back(divide_layer(layer, ranks, expert_tensor));
  return shares;
}

ElementRun within(const ElementRun& run, std::int64_t first, std::int64_t count) {
  const std::int64_t begin = std::max(run.local, first), end = std::min(run.local + run.count, first + count);
  return {.local = begin,
          .whole = run.whole + (begin - run.local),
          .count = std::max<std::int64_t>(0, end - begin),
          .is_replica = run.is_replica};
}

std::vector<ElementRun> element_runs(const Layer& layer, std::size_t parameter, const TensorSeat& seat,
                                     const ExpertSeat& experts) {
  const ParameterTensor tensor = layer_parameters(layer)[parameter];
  const int spread = tensor.expert ? experts.ranks : 1, expert_rank = tensor.expert ? experts.rank : 0;
  const TensorSeat& sharers = tensor.expert ? experts.tensor : seat;
  const std::int64_t elements = element_count(tensor) / spread;
  if (sharers.ranks == 1 || tensor.split_dimension < 0) return {{0, expert_rank * elements, elements}};
  const auto dimension = static_cast<std::size_t>(tensor.split_dimension);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    (d < dimension ? outer : inner) *= d == dimension ? 1 : tensor.shape[d];
  outer /= spread;  // the experts are the first dimension
  const std::int64_t local_size =
      layer_parameters(divide_layer(layer, seat.ranks, experts.tensor.ranks))[parameter].shape[dimension];
  const std::vector<DimensionRun> divided = dimension_runs(tensor, sharers);
  std::vector<ElementRun> runs;
  for (std::int64_t i = 0; i < outer; ++i)
    for (const DimensionRun& run : divided)
      if (run.count > 0)
        runs.push_back({(i * local_size + run.local) * inner,
                        ((expert_rank * outer + i) * tensor.shape[dimension] + run.whole) * inner, run.count * inner,
                        run.is_replica});
  return runs;
}

}}  // namespace plumb::executor
