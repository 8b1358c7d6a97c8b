#pragma once
// What the ranks of an expert group exchange around experts, by all-to-alls of equal blocks: how many rows each sends
// for which expert, rows, and what picks weigh. Which exchanges these are is also in executor/nccl/layer_exchanges.h.

#include <cstdint>

#include "executor/device/calls/recorded_calls.h"
#include "executor/nccl/rank_calls.h"

namespace plumb {

struct DeviceExpertGroup {
  CallRecorder* recorder = nullptr;  ///< of the call; may be null in a group of one
  NcclSeat seat;

  /// Both of `elements`, stored, in equal blocks by member.
  void all_to_all(std::byte* incoming, const std::byte* outgoing, std::int64_t elements,
                  std::int64_t element_bytes) const {
    exchange(true, incoming, outgoing, elements, element_bytes);
  }
  /// The same of words of 4 bytes.
  void all_to_all_words(void* incoming, const void* outgoing, std::int64_t words) const {
    exchange(false, static_cast<std::byte*>(incoming), static_cast<const std::byte*>(outgoing), words, sizeof(float));
  }

 private:
  void exchange(bool is_stored, std::byte* incoming, const std::byte* outgoing, std::int64_t elements,
                std::int64_t element_bytes) const {
    const std::int64_t block = elements / seat.members * element_bytes, own = seat.member * block;
    recorder->copy(incoming + own, outgoing + own, block);
    recorder->exchange({.kind = NcclKind::kSend,
                        .communicator = seat.number,
                        .member = seat.member,
                        .is_stored = is_stored,
                        .values = incoming,
                        .elements = elements,
                        .pairs = DevicePairs::kAllToAll,
                        .outgoing = outgoing});
  }
};

}  // namespace plumb
