#pragma once
// Measures a device by its own kernels, through the streams and events of a replay. The planner's calibration fits the
// result into a cluster with as many devices as the GPU has parts.
//
//   const DeviceMeasurement measured = measure_device(machine, {.parts = 2, .date = "2025-01-31"});

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/machines/device_machine.h"
#include "kernels/layer.h"
#include "traces/measurement.h"

namespace plumb { inline namespace executor {

struct DeviceMeasureOptions {
  int parts = 1;                   ///< parts of the device, a rank each, that work at once
  std::optional<HalfFormat> half;  ///< format of the machine's tensors; none: fp32
  /// Time for everything; the first call of each kind and copies up to 16 MiB are measured in any case.
  Seconds budget{60};
  std::string device;  ///< written into the result as it is, like `date`
  std::string date;
  std::vector<KernelCall> kernels;  ///< empty: device_kernel_ladder()
  std::int64_t largest_copy_bytes = 256 << 20;
  std::int64_t round_bytes = 256 << 20;  ///< memory for the operands of a part, large enough that none stay in a cache
};

/// The times of the same work alone and beside other work.
struct BesideTime {
  Seconds alone{0};
  Seconds beside{0};

  double ratio() const { return beside / alone; }
};

struct DeviceMeasurement {
  Measurement measurement;        ///< kernels on one part alone and on all at once; "message": copies between parts
  Seconds kernel_fixed{0};        ///< time of a kernel with next to nothing to do, behind another
  Seconds enqueue{0};             ///< time that the host takes to enqueue it
  BesideTime product_contention;  ///< the largest product on one part alone, and on all at once
  BesideTime memory_contention;   ///< the kernel that moves most, on one part alone and on all at once
  double from_host_bytes_per_second = 0;
  double to_host_bytes_per_second = 0;
  BesideTime product_beside_copy;  ///< products, and the same beside a copy from the host on another stream
  BesideTime copy_beside_product;  ///< the same copy beside products
};

/// Returns calls in shapes of models that a GPU trains, and some small ones: products of 512 to 8192 tokens and 1024 to
/// 16384 channels in all forms, attention of 512 to 8192 tokens, memory-bound kernels, mixtures of 8 and 64 experts,
/// every optimizer's update, convolutions and poolings of 32 images.
std::vector<KernelCall> device_kernel_ladder();

/// Returns the samples. A sample is the median, over repeats (and parts), of the time of one kernel. It is measured
/// between the events of a call, which holds as many kernels as it takes to last 200 us. Operands follow each other
/// through `round_bytes`, and a first call does not count. The smallest work comes first, and the time is checked
/// between kernels. A call is left out if its repeats would not fit the rest of the budget, or if its operands do not
/// fit the device's memory. The machine must be fresh: nothing has been prepared. Throws SpecError if there is no part
/// or no time.
DeviceMeasurement measure_device(DeviceMachine& machine, const DeviceMeasureOptions& options);

}}  // namespace plumb::executor
