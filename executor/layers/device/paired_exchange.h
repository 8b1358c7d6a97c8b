#pragma once
// The exchanges of a group's members in pairs: all-to-alls of equal blocks, and shifts.

#include <cstddef>
#include <cstdint>

#include "executor/groups/communicator_numbers.h"
#include "executor/program/calls/recorded_calls.h"

namespace plumb { inline namespace executor {

/// Buffers of `elements`, which are as activations are stored, or of 4 bytes.
struct PairedExchange {
  bool is_stored = true;
  std::byte* incoming = nullptr;
  const std::byte* outgoing = nullptr;
  std::int64_t elements = 0;
};

inline void exchange_in_pairs(CallRecorder& recorder, const CommunicatorSeat& seat, DevicePairs pairs,
                              const PairedExchange& of) {
  recorder.exchange({.kind = CollectiveKind::kSend,
                     .communicator = seat.number,
                     .member = seat.member,
                     .is_stored = of.is_stored,
                     .values = of.incoming,
                     .elements = of.elements,
                     .pairs = pairs,
                     .outgoing = of.outgoing});
}

/// Exchanges equal blocks by member; the own block is copied.
inline void all_to_all(CallRecorder& recorder, const CommunicatorSeat& seat, const PairedExchange& of,
                       std::int64_t element_bytes) {
  const std::int64_t block = of.elements / seat.members * element_bytes, own = seat.member * block;
  recorder.copy(of.incoming + own, of.outgoing + own, block);
  exchange_in_pairs(recorder, seat, DevicePairs::kAllToAll, of);
}

}}  // namespace plumb::executor
