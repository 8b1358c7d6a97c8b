#pragma once
// Measures a device by its own kernels, through the streams and events that a replay has: what the planner's
// calibration fits into a cluster of as many devices as the GPU has parts.
//
//   const DeviceMeasurement measured = measure_device(machine, {.parts = 2, .date = "2025-01-31"});

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/device/device_machine.h"
#include "kernels/layer/layer.h"
#include "traces/measurement.h"

namespace plumb { inline namespace executor {

struct DeviceMeasureOptions {
  int parts = 1;                   ///< of the device, a rank each, that work at once
  std::optional<HalfFormat> half;  ///< what the machine's kernels store; none: fp32
  Seconds budget{60};              ///< for all of it; what is first of its kind, and copies up to 16 MiB, come anyway
  std::string device;              ///< written into the result as they are
  std::string date;
  std::vector<KernelCall> kernels;  ///< empty: device_kernel_ladder()
  std::int64_t largest_copy_bytes = 256 << 20;
  std::int64_t round_bytes = 256 << 20;  ///< a part's operands go round in so much memory, so that none stay in a cache
};

/// Of the same work alone and beside something else.
struct BesideTime {
  Seconds alone{0};
  Seconds beside{0};

  double ratio() const { return beside / alone; }
};

struct DeviceMeasurement {
  Measurement measurement;        ///< kernels on one part alone and on all at once; "message": copies between parts
  Seconds kernel_fixed{0};        ///< of a kernel with next to nothing to do, behind another
  Seconds enqueue{0};             ///< of the host's work for it
  BesideTime product_contention;  ///< the largest product on one part alone, and on all at once
  BesideTime memory_contention;   ///< the same of the kernel that moves most
  double from_host_bytes_per_second = 0;
  double to_host_bytes_per_second = 0;
  BesideTime product_beside_copy;  ///< products, and the same beside a copy from the host on another stream
  BesideTime copy_beside_product;  ///< that copy
};

/// Shapes of models that a GPU trains: products of 512 to 8192 tokens and 1024 to 16384 channels in all forms,
/// attention of 512 to 8192 tokens, memory-bound kernels, mixtures of 8 and 64 experts, every optimizer's update,
/// convolutions and poolings of 32 images; and each in small.
std::vector<KernelCall> device_kernel_ladder();

/// A sample is the median over repeats (and parts) of the time of one kernel between the events of a call, which holds
/// as many as it takes to last 200 us; operands follow each other through `round_bytes`, and behind a first call that
/// does not count. Smallest work first, the time looked at between kernels; calls whose repeats would not fit what is
/// left of the budget, or whose operands do not fit the device's memory, are left out. The machine is fresh: nothing
/// has been prepared. Throws SpecError if there is no part or no time.
DeviceMeasurement measure_device(DeviceMachine& machine, const DeviceMeasureOptions& options);

}}  // namespace plumb::executor
