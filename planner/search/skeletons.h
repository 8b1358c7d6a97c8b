#pragma once
// Orders of few micro-batches, which show the stages, the operations and the hops of an order of any number.

#include <string>
#include <tuple>
#include <variant>

#include "planner/evaluate/stage_order.h"
#include "planner/search/bounds.h"
#include "planner/spec/layout.h"
#include "planner/threads/memo.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

struct Skeleton {
  Schedule schedule;
  StageOrder order;
  BoundOrder bound;
};

/// Keeps one for each schedule, number of ranks, chunks and group. Threads may ask at the same time.
class Skeletons {
 public:
  /// Returns the skeleton of the layout's order; null if the schedule has none of so many ranks.
  const Skeleton* find(const Layout& layout) const;

  /// Returns why there is none, as the schedule says it.
  const std::string& why_none(const Layout& layout) const;

 private:
  using Known = std::variant<Skeleton, std::string>;
  const Known& known(const Layout& layout) const;

  Memo<std::tuple<std::string, int, int, int>, Known> known_;  ///< [schedule, pp, v, group]
};

}}  // namespace plumb::planner
