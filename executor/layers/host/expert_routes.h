#pragma once
// The row of an expert to which each pick of a router goes, or none where the expert is full. An expert takes the first
// picks of each sequence in the order of its tokens, so that no division of tokens over ranks, slices or micro-batches
// changes the picks that are dropped (docs/design.md).

#include <cstdint>
#include <span>
#include <vector>

#include "executor/spec/data/token_batch.h"
#include "executor/spec/division/context_division.h"

namespace plumb { inline namespace executor {

struct RouteSize {
  std::int64_t sequences = 0;  ///< b
  std::int64_t sequence = 0;   ///< s, tokens of a whole sequence
  std::int64_t experts = 0;    ///< E
  std::int64_t picks = 0;      ///< k, picks of a token
  std::int64_t capacity = 0;   ///< most picks of one sequence that an expert takes
};

/// Numbers each routed pick that its expert takes with a row of [rows of expert 0, rows of expert 1, ...], within an
/// expert in the order of the own tokens. A pick that is dropped, or that another rank routes, gets -1. Picks of tokens
/// that are not known yet, which are all behind the own ones, are -1. places: [own tokens, k]; rows: [E] rows of each
/// expert; picks: [b, s, k] of whole sequences; own: the tokens of each sequence that are on this rank; routed: those of
/// all own tokens whose picks this rank routes
void place_picks(std::span<std::int32_t> places, std::span<std::int32_t> rows, std::span<const std::int32_t> picks,
                 const ContextTokens& own, const TokenRange& routed, const RouteSize& size);

/// Counts the picks of each expert in each sequence, dropped ones included. loads: [b, E]
void count_loads(std::span<std::int32_t> loads, std::span<const std::int32_t> picks, const RouteSize& size);

/// Copies own picks [b, own tokens, k] to their tokens' places in those of whole sequences [b, s, k].
void spread_picks(std::span<std::int32_t> whole, std::span<const std::int32_t> own_picks, const ContextTokens& own,
                  const RouteSize& size);

}}  // namespace plumb::executor
