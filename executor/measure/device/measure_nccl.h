#pragma once
// Times NCCL's collectives as nccl-tests does (NVIDIA/nccl-tests, src/common.cu). For each size some rounds do not
// count, then rounds run back to back between two barriers, out of place and in place; the values are checked once.

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/measure/measure_collectives.h"
#include "kernels/half_format.h"

namespace plumb { inline namespace executor {

/// One round of a collective over all devices.
struct NcclRound {
  CollectiveKind op = CollectiveKind::kAllReduce;
  /// Bytes of a member's whole buffer: that of the gathered result, or that which is scattered.
  std::int64_t bytes = 0;
  bool in_place = false;
};

/// Work that begins together on every device: products of square matrices on its compute stream, a collective on
/// another stream, or both.
struct OverlapWork {
  std::optional<HalfFormat> half;  ///< format of the matrices; none: fp32
  std::int64_t product_edge = 0;
  int products = 0;
  /// Additional products that run before and do not count, so that the host is ahead when the rest begins.
  int lead = 0;
  std::optional<NcclRound> round;
};

/// Times from the beginning to the end of the work; 0 if there was none.
struct OverlapTimes {
  Seconds products{0};
  Seconds collective{0};
};

/// An interface to the devices that take part: GPUs under NCCL, or stand-ins in tests.
class NcclDevices {
 public:
  virtual ~NcclDevices() = default;
  virtual int ranks() const = 0;

  /// Runs `times` rounds back to back on all devices, and returns the time of the slowest. Throws RunError with rank
  /// and collective.
  virtual Seconds run(const NcclRound& round, int times) = 0;

  /// Runs one round on known values, and returns how many elements are wrong, over all devices.
  virtual std::int64_t wrong_values(const NcclRound& round) = 0;

  /// Returns [device] times by the device's own events. Throws RunError as run() does, or if there is no memory for the
  /// matrices.
  virtual std::vector<OverlapTimes> overlap(const OverlapWork& work) = 0;
};

inline constexpr int kMeasuredCollectives = 7;  ///< number of kinds; all_to_all and shift are not measured in place

struct NcclMeasureOptions {
  int ranks = 0;  ///< number of GPUs, from the first one on; 0: all
  std::vector<std::int64_t> sizes_bytes = {8,       1 << 10, 16 << 10, 64 << 10, 256 << 10,
                                           1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20};
  int warm_up = 5;
  int repeats = 20;    ///< rounds of a size; fewer if the budget does not allow them
  Seconds budget{20};  ///< time for all collectives
  /// Format of products beside collectives (measure_nccl_slowdown.h).
  std::optional<HalfFormat> half = HalfFormat::kBf16;
};

struct NcclSample {
  CollectiveSample sample;  ///< `median` and `fastest` are the mean of a round
  bool in_place = false;
  std::int64_t wrong = 0;  ///< wrong elements
};

/// Returns samples of every collective that NCCL has, and of an all-to-all and a shift by grouped sends and receives,
/// for each size. Sizes that the ranks do not divide are rounded down to 4 bytes a rank. A size is left out if, by the
/// size before, it would take more than its share of the budget; the first size and shifts up to 16 MiB are always
/// measured. Throws SpecError if a size is not positive.
std::vector<NcclSample> measure_nccl(NcclDevices& devices, const NcclMeasureOptions& options);

}}  // namespace plumb::executor
