#pragma once
// Which part of a layer performs an exchange of its program: one answer for the CPU and for a device.

#include <cstdint>

#include "kernels/layer.h"

namespace plumb { inline namespace executor {

enum class ExchangePart : std::uint8_t {
  kTensorGroup,  ///< partial sums and blocks of rows of tensor ranks
  kExpertGroup,  ///< rows on their way to experts and back
  kHeads,        ///< heads for tokens, of context ranks (Ulysses)
  kPicks,        ///< picks of all context ranks, by which experts count their room
  kAttention,    ///< keys and values that attention itself passes round
};

inline ExchangePart part_of(const Exchange& exchange) {
  if (exchange.group == ExchangeGroup::kTensor) return ExchangePart::kTensorGroup;
  if (exchange.group == ExchangeGroup::kExpert) return ExchangePart::kExpertGroup;
  if (exchange.kind == ExchangeKind::kAllToAll) return ExchangePart::kHeads;
  return exchange.kind == ExchangeKind::kAllGather ? ExchangePart::kPicks : ExchangePart::kAttention;
}

}}  // namespace plumb::executor
