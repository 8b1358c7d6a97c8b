#pragma once
// What was measured of compute beside a collective, and what it says: a cluster's "collective_slowdown".

#include <cstdint>
#include <optional>

#include "executor/transport/collective.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// Times are medians over the repeats and members.
struct SlowdownSample {
  CollectiveOp op = CollectiveOp::kAllReduce;
  int members = 1;
  std::int64_t bytes = 0;         ///< of a member's whole buffer in the collective
  std::int64_t product_edge = 0;  ///< of the square matrices that are multiplied
  Seconds alone{0};               ///< of a member's products without a collective
  Seconds beside{0};              ///< of the same beside one, which begins with them
  Seconds collective_alone{0};    ///< of the collective without products
  Seconds collective{0};          ///< how long it was under way beside them
  int repeats = 0;
};

/// x where compute runs at 1 / (1 + x) while the collective is under way: of the `overlap` o of both, the time lost l
/// is what x / (1 + x) of it are, so x = l / (o - l). 0 where nothing is lost; nothing where no compute was done in o.
std::optional<double> slowdown_of(const SlowdownSample& sample);

}}  // namespace plumb::executor
