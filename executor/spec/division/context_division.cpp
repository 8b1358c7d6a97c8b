#include "executor/spec/division/context_division.h"

#include <algorithm>
#include <cassert>
#include <variant>

#include <fmt/format.h>

namespace plumb { inline namespace executor {

ContextTokens context_tokens(const TokenRange& shared, const ContextSeat& seat) {
  if (seat.ranks == 1) return {.first = shared};
  if (seat.attention == ContextAttention::kUlysses) {
    const std::int64_t share = shared.count / seat.ranks;
    assert(share * seat.ranks == shared.count);
    return {.first = {shared.first + seat.rank * share, share}};
  }
  const std::int64_t run = shared.count / (2 * seat.ranks);
  assert(run * 2 * seat.ranks == shared.count);
  return {.first = {shared.first + seat.rank * run, run},
          .second = {shared.first + (2 * seat.ranks - 1 - seat.rank) * run, run}};
}

std::string why_not_shared(const Layer& layer, const SequenceCut& cut, const ContextSeat& seat, int tensor_ranks) {
  if (seat.ranks == 1) return {};
  const bool is_ring = seat.attention == ContextAttention::kRing;
  const int runs = is_ring ? 2 * seat.ranks : seat.ranks;
  for (int slice = 0; slice < cut.slices; ++slice) {
    const std::int64_t tokens = slice_tokens(cut.sequence, cut.slices, slice).count;
    if (tokens % runs != 0)
      return fmt::format("{} of {} tokens cannot be cut into {} runs for {} context ranks; choose a multiple of {}",
                         cut.slices > 1 ? "slices" : "sequences", tokens, runs, seat.ranks, runs);
  }
  if (std::holds_alternative<EmbeddingLayer>(layer) || std::holds_alternative<HeadLayer>(layer)) return {};
  const auto* block = std::get_if<TransformerLayer>(&layer);
  if (block == nullptr)
    return fmt::format("a layer of kind {} is not shared by context ranks; set context to 1", layer_kind_name(layer));
  if (block->mixes_states())
    return "the states of a block pass from token to token, and context ranks do not share it; set context to 1";
  if (block->heads == 0) return {};
  const std::int64_t kv_heads = std::max<std::int64_t>(1, block->kv_heads / tensor_ranks);
  if (!is_ring && (block->heads / tensor_ranks % seat.ranks != 0 || kv_heads % seat.ranks != 0))
    return fmt::format(
        "{} heads and {} kv heads a tensor rank cannot be divided over {} context ranks by all-to-all; use the ring, "
        "or "
        "a degree that divides them",
        block->heads / tensor_ranks, kv_heads, seat.ranks);
  return {};
}

}}  // namespace plumb::executor
