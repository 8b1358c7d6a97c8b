#pragma once
// The exchanges of a layer's groups in one pass over it, in order: the collectives of tensor, sequence, context and
// expert parallelism, without the layer's values. executor/cpu makes the same exchanges with values; a test compares
// the two call by call.

#include <cstdint>
#include <vector>

#include "executor/division/context_division.h"
#include "executor/transport/collective.h"
#include "kernels/layer/layer.h"

namespace plumb { inline namespace executor {

enum class ExchangeGroup : std::uint8_t { kTensor, kContext, kExpert, kCopies, kExpertCopies };

struct LayerExchange {
  ExchangeGroup group = ExchangeGroup::kTensor;
  CollectiveKind op = CollectiveKind::kAllReduce;
  std::int64_t elements = 0;  ///< elements of 4 bytes, as in Collective::values
  int root = 0;
  bool is_bound = false;  ///< true: `elements` is a bound, since the router's picks decide
  bool beside = false;    ///< the next piece of compute runs beside it, and the piece behind that waits for it
  bool joined = false;    ///< no compute lies between this exchange and the one before
  bool is_piece = false;  ///< true: no exchange, but a piece of compute of its own
};

/// The work of one rank on a micro-batch, or slice.
struct ExchangeShape {
  int tensor = 1;  ///< size of each group
  int context = 1;
  int expert = 1;
  bool sequence_parallel = false;
  ContextAttention attention = ContextAttention::kRing;
  std::int64_t sequences = 1;     ///< sequences of the micro-batch on this rank
  std::int64_t tokens = 1;        ///< tokens of each sequence on this rank, in this slice
  std::int64_t block_tokens = 1;  ///< the same, with earlier slices
  std::int64_t sequence = 1;      ///< tokens of a whole sequence
};

/// Returns the exchanges of one pass. `layer` is the whole layer. Pass::kOptimizer exchanges nothing.
std::vector<LayerExchange> layer_exchanges(const Layer& layer, const ExchangeShape& shape, Pass pass);

}}  // namespace plumb::executor
