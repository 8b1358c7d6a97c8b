#pragma once
// Times of compute beside a collective, and the cluster's "collective_slowdown" that follows from them.

#include <cstdint>
#include <optional>

#include "executor/transport/collective.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// Times are medians over the repeats and members.
struct SlowdownSample {
  CollectiveKind op = CollectiveKind::kAllReduce;
  int members = 1;
  std::int64_t bytes = 0;         ///< bytes of a member's whole buffer in the collective
  std::int64_t product_edge = 0;  ///< edge of the square matrices that are multiplied
  Seconds alone{0};               ///< time of a member's products without a collective
  Seconds beside{0};              ///< time of the same products beside a collective that begins with them
  Seconds collective_alone{0};    ///< time of the collective without products
  Seconds collective{0};          ///< time that the collective was under way beside the products
  int repeats = 0;
};

/// Returns the slowdown x: compute runs at 1 / (1 + x) of its speed while the collective is under way. If both overlap
/// for a time o, the time lost is l = o x / (1 + x), so x = l / (o - l). Returns 0 if nothing is lost, and nothing if
/// no compute was done in o.
std::optional<double> slowdown_of(const SlowdownSample& sample);

}}  // namespace plumb::executor
