#pragma once
// The least time that a kernel's work takes on a GPU: the longest of the times that each unit needs at its
// published rate.

#include <array>
#include <string>

#include "schedules/time.h"
#include "tests/ptx/machine/work.h"

namespace plumb::test::ptx {

/// Published rates of a whole GPU, by second.
struct UnitRates {
  double memory_bytes = 0;
  double tensor_flops = 0;
  double fp32_flops = 0;  ///< a fused product and sum count as two
  int fp32_lanes = 128;   ///< results of fp32 in a clock of a multiprocessor: 64 on compute capability 8.0
};

struct WorkBound {
  Seconds time{0};
  std::string unit;  ///< that needs so long: "bytes", "tensor cores", "fp32", "special functions", "issue slots" or
                     ///< "shared memory"
};

/// Returns the time that each unit needs. A multiprocessor issues 4 instructions of a warp in a clock, computes 16 special functions, and moves 128
/// bytes through shared memory (CUDA C++ Programming Guide, "Arithmetic Instructions" and "Compute
/// Capabilities"). The clocks of all multiprocessors together follow from the peak of fp32.
std::array<WorkBound, 6> unit_times(const Work& work, const UnitRates& rates);

/// Returns the longest of them.
WorkBound bound_of(const Work& work, const UnitRates& rates);

}  // namespace plumb::test::ptx
