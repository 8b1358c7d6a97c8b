#pragma once
// The exchanges of an expert group's ranks around experts, by all-to-alls of equal blocks: how many rows each rank
// sends for which expert, the rows, and the weights of the picks.

#include <cstddef>
#include <cstdint>

#include "executor/layers/device/paired_exchange.h"

namespace plumb { inline namespace executor {

struct DeviceExpertGroup {
  CallRecorder* recorder = nullptr;  ///< of the call; null in a group of one
  CommunicatorSeat seat;

  /// Exchanges equal blocks by member; both buffers have `elements` as activations are stored.
  void all_to_all(std::byte* incoming, const std::byte* outgoing, std::int64_t elements,
                  std::int64_t element_bytes) const {
    plumb::all_to_all(*recorder, seat, {true, incoming, outgoing, elements}, element_bytes);
  }
  /// Exchanges equal blocks of words of 4 bytes.
  void all_to_all_words(void* incoming, const void* outgoing, std::int64_t words) const {
    plumb::all_to_all(*recorder, seat,
                      {false, static_cast<std::byte*>(incoming), static_cast<const std::byte*>(outgoing), words},
                      sizeof(float));
  }
};

}}  // namespace plumb::executor
