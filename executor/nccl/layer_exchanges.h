#pragma once
// What the ranks of a layer's groups exchange in one pass over it, in order: the collectives of tensor, sequence,
// context and expert parallelism, without the layer's values. executor/cpu does the same with values; a test holds the
// two against each other call by call.

#include <cstdint>
#include <vector>

#include "executor/division/context_division.h"
#include "executor/transport/collective.h"
#include "kernels/layer/layer.h"

namespace plumb { inline namespace executor {

enum class ExchangeGroup : std::uint8_t { kTensor, kContext, kExpert, kCopies, kExpertCopies };

struct LayerExchange {
  ExchangeGroup group = ExchangeGroup::kTensor;
  CollectiveOp op = CollectiveOp::kAllReduce;
  std::int64_t elements = 0;  ///< of 4 bytes, as Collective::values
  int root = 0;
  bool is_bound = false;  ///< the router's picks decide; never more than that
  bool beside = false;    ///< the next piece of compute runs beside it, the one behind that waits for it
  bool joined = false;    ///< nothing is computed between the one before and this
  bool is_piece = false;  ///< no exchange: a piece of compute of its own
};

/// A micro-batch, or slice, on one rank.
struct ExchangeShape {
  int tensor = 1;  ///< ranks of each group
  int context = 1;
  int expert = 1;
  bool sequence_parallel = false;
  ContextAttention attention = ContextAttention::kRing;
  std::int64_t sequences = 1;     ///< of the micro-batch that are worked on here
  std::int64_t tokens = 1;        ///< of each that this rank has in this slice
  std::int64_t block_tokens = 1;  ///< with those of the slices before
  std::int64_t sequence = 1;      ///< tokens of a whole one
};

/// `layer` as a whole. Pass::kOptimizer exchanges nothing.
std::vector<LayerExchange> layer_exchanges(const Layer& layer, const ExchangeShape& shape, Pass pass);

}}  // namespace plumb::executor
