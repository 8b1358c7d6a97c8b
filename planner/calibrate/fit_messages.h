#pragma once
// What a message costs on a network, from times of single messages.
//
//   time(bytes) = latency + (bytes > eager ? rendezvous : 0) + max(0, bytes - burst) / bandwidth
//
// Transports hand small messages over at once and announce large ones first (MPI's eager limit and rendezvous); network
// cards behind a token bucket let a burst pass at once. Both are in the form; where the network has neither, they come
// out as 0.

#include <cstdint>
#include <vector>

#include "schedules/time.h"
#include "traces/measurement.h"

namespace plumb { inline namespace planner {

struct MessageLink {
  Seconds latency{0};
  Seconds rendezvous{0};         ///< more, for messages beyond eager_bytes
  std::int64_t eager_bytes = 0;  ///< the largest measured message that was not announced
  double bytes_per_second = 0;
  std::int64_t burst_bytes = 0;
};

struct MessageFit {
  MessageLink link;
  double mean_residual_pct = 0;  ///< of the samples' medians
  double worst_residual_pct = 0;
};

/// Of a single message on a rested card.
Seconds message_time(const MessageLink& link, std::int64_t bytes);

/// What a message of that size waits for besides its bytes: latency, and rendezvous where it is announced.
Seconds hop_latency(const MessageLink& link, std::int64_t bytes);

/// Least squares on relative errors over "message" samples: for each eager limit between two sizes and each burst up to
/// half of the largest size in steps of 4 KiB the three linear constants; the best of all, none negative. Throws
/// SpecError if there are fewer than 6 sizes, or times do not grow with size.
MessageFit fit_messages(const std::vector<KernelSample>& samples);

}}  // namespace plumb::planner
