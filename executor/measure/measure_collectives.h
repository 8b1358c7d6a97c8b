#pragma once
// Times the collectives of the in-process transport.

#include <cstdint>
#include <vector>

#include "executor/transport/collective_steps.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

struct CollectiveSample {
  CollectiveKind op = CollectiveKind::kAllReduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing;
  int members = 1;
  std::int64_t bytes = 0;  ///< bytes of a member's whole buffer
  Seconds median{0};       ///< time from the last member's start to the last member's end
  Seconds fastest{0};
  int repeats = 0;
};

struct CollectiveMeasureOptions {
  int members = 2;
  std::vector<std::int64_t> sizes_bytes = {4 << 10, 64 << 10, 1 << 20, 16 << 20};
  Seconds budget{10};  ///< approximate time for all of them
};

/// Times every collective by ring and by tree (all_to_all and shift, which have one algorithm, once), by size, at least
/// 5 times each. Members are threads. Throws SpecError if there are fewer than 2 members or a size is below 4 bytes.
std::vector<CollectiveSample> measure_collectives(const CollectiveMeasureOptions& options);

/// Return the bytes over the median time, and for bus_bytes_per_second this times the share of the buffer that crosses
/// the busiest link (nccl-tests, doc/PERFORMANCE.md): all_reduce 2(n-1)/n; all_gather, reduce_scatter, scatter, gather
/// and all_to_all (n-1)/n; the others 1.
double algorithm_bytes_per_second(const CollectiveSample& sample);
double bus_bytes_per_second(const CollectiveSample& sample);

}}  // namespace plumb::executor
