#pragma once
// The exchanges of a context group's ranks around attention: heads by an all-to-all (Ulysses), or keys, values and
// their gradients by shifts (ring); and of a router's picks.

#include <cstddef>
#include <cstdint>

#include "executor/layers/device/paired_exchange.h"
#include "executor/spec/division/context_division.h"

namespace plumb { inline namespace executor {

struct DeviceContextGroup {
  CallRecorder* recorder = nullptr;  ///< of the call; null in a group of one
  CommunicatorSeat seat;
  ContextTokens tokens;  ///< tokens of each sequence, or of its slice, that this rank has

  bool is_shared() const { return seat.members > 1; }

  /// Exchanges equal blocks by member; both buffers have `elements` as activations are stored.
  void all_to_all(std::byte* incoming, const std::byte* outgoing, std::int64_t elements,
                  std::int64_t element_bytes) const {
    plumb::all_to_all(*recorder, seat, {true, incoming, outgoing, elements}, element_bytes);
  }

  /// Sends to the next member and receives from the one before, as activations are stored or in fp32.
  void shift(std::byte* incoming, const std::byte* outgoing, std::int64_t elements) const {
    exchange_in_pairs(*recorder, seat, DevicePairs::kShift, {true, incoming, outgoing, elements});
  }
  void shift_singles(float* incoming, const float* outgoing, std::int64_t elements) const {
    exchange_in_pairs(
        *recorder, seat, DevicePairs::kShift,
        {false, reinterpret_cast<std::byte*>(incoming), reinterpret_cast<const std::byte*>(outgoing), elements});
  }

  /// Gathers each rank's block of words of 4 bytes. values: [elements], of which the own block is there
  void gather_words(float* values, std::int64_t elements) const {
    recorder->exchange({.kind = CollectiveKind::kAllGather,
                        .communicator = seat.number,
                        .member = seat.member,
                        .values = reinterpret_cast<std::byte*>(values),
                        .elements = elements});
  }
};

}}  // namespace plumb::executor
