#pragma once
// How much slower GPUs compute while a collective of theirs is under way: NCCL's kernels take SMs, and memory
// bandwidth.

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/measure/slowdown_sample.h"
#include "executor/nccl/measure_nccl.h"
#include "kernels/half_format.h"

namespace plumb { inline namespace executor {

struct NcclSlowdownOptions {
  std::optional<HalfFormat> half;  ///< of the products; none: fp32
  std::int64_t most_edge = 4096;   ///< of their square matrices: four waves of tiles and more on GPUs of 132 SMs
  std::int64_t most_bytes = 64 << 20;
  Seconds budget{4};
};

/// Beside an all-reduce, an all-gather and a reduce-scatter, those that go on beside compute in a training: products of
/// which as many as last twice as long as the collective are timed without it and with it, by turns. Sizes are the
/// largest whose least repeats fit into the budget, `product_edge` and `bytes` of a sample; the second and third
/// collective are left out where the time is over. Empty for fewer than 2 devices.
std::vector<SlowdownSample> measure_nccl_slowdown(NcclDevices& devices, const NcclSlowdownOptions& options);

}}  // namespace plumb::executor
