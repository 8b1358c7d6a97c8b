#pragma once
// The cost of a message on a network, from times of single messages.
//
//   time(bytes) = latency + (bytes > eager ? rendezvous : 0) + max(0, bytes - burst) / bandwidth
//
// Transports send small messages at once and announce large ones first (MPI's eager limit and rendezvous). Network
// cards behind a token bucket let a burst pass at once. The form has both; where the network has neither, they come out
// as 0.

#include <cstdint>
#include <vector>

#include "schedules/time.h"
#include "traces/measurement.h"

namespace plumb { inline namespace planner {

struct MessageLink {
  Seconds latency{0};
  Seconds rendezvous{0};         ///< additional time of messages beyond eager_bytes
  std::int64_t eager_bytes = 0;  ///< largest measured message that was not announced
  double bytes_per_second = 0;
  std::int64_t burst_bytes = 0;
};

struct MessageFit {
  MessageLink link;
  double mean_residual_pct = 0;  ///< over the samples' medians
  double worst_residual_pct = 0;
};

/// Returns the time of a single message on a rested card.
Seconds message_time(const MessageLink& link, std::int64_t bytes);

/// Returns the time that a message of that size waits besides its bytes: latency, and rendezvous where it is announced.
Seconds hop_latency(const MessageLink& link, std::int64_t bytes);

/// Fits a link to "message" samples by least squares on relative errors. For each eager limit between two sizes and
/// each burst up to half of the largest size in steps of 4 KiB it solves for the three linear constants, and returns
/// the best fit without a negative constant. Throws SpecError if there are fewer than 6 sizes, or times do not grow
/// with size.
MessageFit fit_messages(const std::vector<KernelSample>& samples);

}}  // namespace plumb::planner
