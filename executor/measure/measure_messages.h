#pragma once
// Times messages between two ranks of a transport, one at a time: what a pipeline's hops are made of.

#include <cstdint>
#include <vector>

#include "executor/timed/sleeper.h"
#include "executor/transport/transport.h"
#include "schedules/time.h"
#include "traces/measurement.h"

namespace plumb { inline namespace executor {

struct MessageMeasureOptions {
  /// Between the eager limits that transports have, and beyond them.
  std::vector<std::int64_t> sizes_bytes = {4,         4 << 10,   16 << 10,  32 << 10,  60 << 10, 72 << 10, 96 << 10,
                                           128 << 10, 192 << 10, 384 << 10, 768 << 10, 3 << 19,  3 << 20};
  int repeats = 9;     ///< of each size; one more, not counted, comes first
  Seconds idle{0.02};  ///< before each round trip: operations last so long, and a network card is rested
};

/// Called by ranks 0 and 1 of the transport. On rank 0 a "message" {bytes} sample a size: half of a round trip, the
/// receive being posted ahead, from the send to the waking of who waits; nothing on rank 1. Throws SpecError if a size
/// is not positive or there are no repeats, RunError as the transport does.
std::vector<KernelSample> measure_messages(Transport& transport, int rank, const MessageMeasureOptions& options,
                                           const Sleeper& sleeper);

/// The same between two threads of this process.
std::vector<KernelSample> measure_messages_of_threads(const MessageMeasureOptions& options);

}}  // namespace plumb::executor
