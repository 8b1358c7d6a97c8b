#pragma once
// How much slower ranks compute while a collective of theirs is under way: a cluster's "collective_slowdown".

#include <cstdint>
#include <optional>

#include "schedules/time.h"

namespace plumb {

struct SlowdownSample {
  int members = 1;
  std::int64_t bytes = 0;  ///< of the all-reduces
  Seconds alone{0};        ///< median over the repeats of a member's products without an all-reduce
  Seconds beside{0};       ///< the same beside one, which begins with them
  Seconds collective{0};   ///< how long it was under way meanwhile
  int repeats = 0;
};

struct SlowdownMeasureOptions {
  int members = 2;
  std::int64_t bytes = 16 << 20;
  Seconds budget{2};  ///< about
};

/// Matrix products of every member, about twice as long as the all-reduce of all of them alone. Throws SpecError if
/// there are fewer than 2 members or fewer than 4 bytes.
SlowdownSample measure_collective_slowdown(const SlowdownMeasureOptions& options);

/// x where compute runs at 1 / (1 + x) while the collective is under way: of the `overlap` o of both, the time lost l
/// is what x / (1 + x) of it are, so x = l / (o - l). 0 where nothing is lost; nothing where no compute was done in o.
std::optional<double> slowdown_of(const SlowdownSample& sample);

}  // namespace plumb
