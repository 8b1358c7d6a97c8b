#pragma once
// The earliest and the latest of what a lane must do, by position along the lane: the numbers that all bounds
// are sums of. A whole backward counts as an input gradient that takes all of its time, and each slice of a sequence as a
// micro-batch: what slices wait for besides can only make an order longer. Where overlapped pairs take less time, costs are
// costs_below_pairs().

#include <cstdint>
#include <vector>

#include "schedules/bounds/order_question.h"

namespace plumb { inline namespace schedules {

/// The way from the end of an input gradient to an end that the objective counts.
struct BoundTail {
  std::int64_t way = 0;  ///< 0 or more
  int to = 0;            ///< the position that it ends at, whose rank's first start does not count in a span

  friend bool operator==(const BoundTail&, const BoundTail&) = default;
};

struct LaneTimes {
  std::int64_t microbatches = 1;  ///< slices of them, where sequences are cut
  /// By so much no first input gradient of a position starts as early as first_input_grad: the last slice of a sequence
  /// goes back first, and all slices before it have run forward.
  std::int64_t slice_wait = 0;
  // These are by position along the lane.
  std::vector<int> stages;
  std::vector<int> ranks;
  std::vector<std::int64_t> forward;
  std::vector<std::int64_t> input_grad;
  std::vector<std::int64_t> weight_grad;
  HopTimes hop;                                ///< to the next position and back; 0 on one rank
  HopTimes hop_busy;                           ///< the part of it for which a message has its link to itself
  std::vector<std::int64_t> first_forward;     ///< no forward of the position starts earlier
  std::vector<std::int64_t> first_input_grad;  ///< no input gradient of the position starts earlier
  std::vector<BoundTail> tails;                ///< behind the last input gradient of the position
  std::vector<std::int64_t> uncounted;         ///< before its rank's first start: a span leaves it out
};

/// Returns the lanes of a question. Throws SpecError if no order ends before kLatestMoment.
std::vector<LaneTimes> lanes_of(const OrderQuestion& question);

}}  // namespace plumb::schedules
