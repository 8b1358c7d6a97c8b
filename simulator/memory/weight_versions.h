#pragma once
// Says which versions of a stage's weights are alive, and from which action to which. Asynchronous schedules keep a
// version until the last micro-batch that uses it has gone back. The schedule's WeightPolicy says which version a
// micro-batch uses.
//
//   PipeDream on p ranks: rank r holds p - r versions. 2BW: two on every rank, whatever p.

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace simulator {

/// A version beside the one that a stage always has, by action id (schedules/dependencies/dependencies.h).
struct ExtraVersion {
  /// The OPTIMIZER_STEP that writes the newer version beside this one: both are held from its start.
  std::int32_t born = 0;
  std::int32_t dies = 0;  ///< the last backward that uses the older version, which is dropped at its end
};

/// Returns [stage] its versions. A version that is not used any more when its successor is made is overwritten in place
/// and not listed. Under WeightPolicy::kCurrent there are none.
std::vector<std::vector<ExtraVersion>> extra_versions(const Schedule& schedule);

}}  // namespace plumb::simulator
