#pragma once
// Times NCCL's collectives as nccl-tests does (NVIDIA/nccl-tests, src/common.cu): for each size some rounds that do not
// count, then rounds back to back between two barriers, out of place and in place; checked once.

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/measure/measure_collectives.h"
#include "kernels/half_format.h"

namespace plumb { inline namespace executor {

/// One round of a collective over all devices.
struct NcclRound {
  CollectiveOp op = CollectiveOp::kAllReduce;
  std::int64_t bytes = 0;  ///< of a member's whole buffer: of the gathered result, of what is scattered
  bool in_place = false;
};

/// Products of square matrices on every device's compute stream, a collective on another, or both, begun together.
struct OverlapWork {
  std::optional<HalfFormat> half;  ///< of the matrices; none: fp32
  std::int64_t product_edge = 0;
  int products = 0;
  int lead = 0;  ///< products more that run before and do not count, so that the host is ahead when the rest begins
  std::optional<NcclRound> round;
};

/// From their beginning to their end; 0 where there was none.
struct OverlapTimes {
  Seconds products{0};
  Seconds collective{0};
};

/// The devices that take part, seen from outside: GPUs under NCCL, or in tests none.
class NcclDevices {
 public:
  virtual ~NcclDevices() = default;
  virtual int ranks() const = 0;

  /// So many rounds back to back on all devices; returns how long the slowest one took. Throws RunError with rank and
  /// collective.
  virtual Seconds run(const NcclRound& round, int times) = 0;

  /// One round on known values; how many elements are not what they should be, over all devices.
  virtual std::int64_t wrong_values(const NcclRound& round) = 0;

  /// [device] by the device's own events. Throws RunError as run() does, or if there is no memory for the matrices.
  virtual std::vector<OverlapTimes> overlap(const OverlapWork& work) = 0;
};

inline constexpr int kMeasuredCollectives = 7;  ///< kinds; all_to_all and shift not in place

struct NcclMeasureOptions {
  int ranks = 0;  ///< the first so many GPUs; 0: all
  std::vector<std::int64_t> sizes_bytes = {8,       1 << 10, 16 << 10, 64 << 10, 256 << 10,
                                           1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20};
  int warm_up = 5;
  int repeats = 20;                                    ///< of a size; fewer where the budget does not allow them
  Seconds budget{20};                                  ///< for all of them
  std::optional<HalfFormat> half = HalfFormat::kBf16;  ///< of products beside collectives (measure_nccl_slowdown.h)
};

struct NcclSample {
  CollectiveSample sample;  ///< `median` and `fastest` are the mean of a round
  bool in_place = false;
  std::int64_t wrong = 0;  ///< elements
};

/// Every collective that NCCL has, and an all-to-all and a shift of grouped sends and receives, by size. Sizes that the
/// ranks do not divide are rounded down to 4 bytes a rank; a size that, by the one before, would take more than its
/// share of the budget is left out, but for the first, and shifts up to 16 MiB. Throws SpecError if a size is not
/// positive.
std::vector<NcclSample> measure_nccl(NcclDevices& devices, const NcclMeasureOptions& options);

}}  // namespace plumb::executor
