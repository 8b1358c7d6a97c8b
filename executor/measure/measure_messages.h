#pragma once
// Times messages between two ranks of a transport, one at a time; the hops of a pipeline are such messages.

#include <cstdint>
#include <vector>

#include "executor/transport/emulated/sleeper.h"
#include "executor/transport/transport.h"
#include "schedules/time.h"
#include "traces/measurement.h"

namespace plumb { inline namespace executor {

struct MessageMeasureOptions {
  /// Sizes between the eager limits of common transports, and beyond them.
  std::vector<std::int64_t> sizes_bytes = {4,         4 << 10,   16 << 10,  32 << 10,  60 << 10, 72 << 10, 96 << 10,
                                           128 << 10, 192 << 10, 384 << 10, 768 << 10, 3 << 19,  3 << 20};
  int repeats = 9;  ///< round trips of each size; one more, not counted, comes first
  /// Pause before each round trip, as long as an operation lasts, so that a network card has rested.
  Seconds idle{0.02};
};

/// Measures messages; called by ranks 0 and 1 of the transport. Rank 0 gets a "message" {bytes} sample for each size,
/// rank 1 nothing. A sample is half of a round trip, with the receive posted ahead, from the send to the wake-up of the
/// waiting rank. Throws SpecError if a size is below 4 bytes or there are no repeats, and RunError as the transport
/// does.
std::vector<KernelSample> measure_messages(Transport& transport, int rank, const MessageMeasureOptions& options,
                                           const Sleeper& sleeper);

/// Measures messages between two threads of this process.
std::vector<KernelSample> measure_messages_of_threads(const MessageMeasureOptions& options);

}}  // namespace plumb::executor
