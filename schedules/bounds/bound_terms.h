#pragma once
// Puts a lower bound together from its terms.

#include <string>
#include <utility>

#include "schedules/bounds/lane_times.h"
#include "schedules/bounds/lower_bound.h"

namespace plumb { inline namespace schedules {

class BoundTerms {
 public:
  explicit BoundTerms(std::string reason) : bound_{.reason = std::move(reason), .terms = {}} {}

  /// Adds a stretch of time; one of no length is left out.
  void add(std::int64_t time, std::string what);

  /// Adds the time from where `tail` ends counting to a moment that is `moment` behind the start of the step.
  void add_start(const LaneTimes& lane, const BoundTail& tail, std::int64_t moment, int rank);

  /// Adds the way behind the last input gradient of a position.
  void add_tail(const LaneTimes& lane, int position);

  LowerBound sum() && { return std::move(bound_); }

 private:
  LowerBound bound_;
};

}}  // namespace plumb::schedules
