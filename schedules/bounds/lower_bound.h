#pragma once
// Lower bounds on the time of any order of a question's actions, each with its reason. A bound is a sum of
// terms in words, and can be computed again from the question alone. rank_bounds.h, memory_bounds.h and
// link_bounds.h have the derivations.
//
//   LowerBound bound = best_bound(question);
//   bound.reason          // "the work of rank 0"
//   bound.terms.front()   // {"of forwards on rank 0", 871}

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/bounds/order_question.h"

namespace plumb { inline namespace schedules {

/// A stretch of time that no order avoids.
struct BoundTerm {
  std::string what;
  std::int64_t time = 0;  ///< in the unit of the costs; 1 or more

  friend bool operator==(const BoundTerm&, const BoundTerm&) = default;
};

struct LowerBound {
  std::int64_t time = 0;  ///< the sum of the terms
  std::string reason;     ///< what binds: "the work of rank 2"
  std::vector<BoundTerm> terms;

  friend bool operator==(const LowerBound&, const LowerBound&) = default;
};

/// Returns the largest of all bounds below: no order within the question's memory takes less of its
/// objective's time. Throws SpecError for a question that no order finishes before kLatestMoment.
LowerBound best_bound(const OrderQuestion& question);

}}  // namespace plumb::schedules
