#pragma once
// Measures how much slower GPUs compute while they run a collective: NCCL's kernels take SMs and memory bandwidth.

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/measure/device/measure_nccl.h"
#include "executor/measure/slowdown_sample.h"
#include "kernels/half_format.h"

namespace plumb { inline namespace executor {

struct NcclSlowdownOptions {
  std::optional<HalfFormat> half;  ///< format of the products; none: fp32
  /// Most rows of their square matrices: at least four waves of tiles on GPUs of 132 SMs.
  std::int64_t most_edge = 4096;
  std::int64_t most_bytes = 64 << 20;
  Seconds budget{4};
};

/// Returns samples for an all-reduce, an all-gather and a reduce-scatter, the collectives that run beside compute in a
/// training. Products that last twice as long as the collective are timed without it and with it, in turn. The sizes
/// are the largest whose fewest repeats fit into the budget; the sample has them as `product_edge` and `bytes`. The
/// second and third collective are left out if the time is over. The result is empty for fewer than 2 devices.
std::vector<SlowdownSample> measure_nccl_slowdown(NcclDevices& devices, const NcclSlowdownOptions& options);

}}  // namespace plumb::executor
