#include "schedules/bounds/bound_terms.h"

#include <cassert>

#include <fmt/format.h>

#include "schedules/time.h"

namespace plumb { inline namespace schedules {

void BoundTerms::add(std::int64_t time, std::string what) {
  assert(time >= 0);
  if (time == 0) return;
  if (time > 2 * kLatestMoment.count() - bound_.time) refuse_late_moment("the schedule");
  bound_.time += time;
  bound_.terms.push_back({.what = std::move(what), .time = time});
}

void BoundTerms::add_start(const LaneTimes& lane, const BoundTail& tail, std::int64_t moment, int rank) {
  const std::int64_t uncounted = lane.uncounted[tail.to];
  add(moment - uncounted, uncounted == 0 ? fmt::format("until rank {} can begin", rank)
                                         : fmt::format("from the first forward of rank {} until rank {} can begin",
                                                       lane.ranks[tail.to], rank));
}

void BoundTerms::add_tail(const LaneTimes& lane, int position) {
  const BoundTail& tail = lane.tails[position];
  const int to = lane.ranks[tail.to];
  add(tail.way - lane.weight_grad[tail.to],
      fmt::format("for the last gradient from rank {} back to rank {}", lane.ranks[position], to));
  add(lane.weight_grad[tail.to], fmt::format("for the last weight gradient of rank {}", to));
}

}}  // namespace plumb::schedules
