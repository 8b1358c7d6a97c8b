#pragma once
// Counts what ranks send and hold where weights travel (schedules/dependencies/weight_messages.h), in model parts. Their
// bytes are those of a part's weights, whatever the length of the sequences.

#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct WeightTraffic {
  int weights = 0;    ///< parts whose weights the rank sends
  int gradients = 0;  ///< parts whose gradients it sends
  /// The most weights of parts that it holds at once besides its own, from RECV_WEIGHTS to RESHARD in issue order.
  int most_held = 0;

  friend bool operator==(const WeightTraffic&, const WeightTraffic&) = default;
};

/// Returns [rank] its traffic.
std::vector<WeightTraffic> weight_traffic(const Schedule& schedule);

}}  // namespace plumb::schedules
