#include "tests/ptx/work_bound.h"

#include <algorithm>

namespace plumb::test::ptx {
namespace {

constexpr double kIssued = 4;                   // instructions of a warp in a clock of a multiprocessor
constexpr double kSpecial = 16.0 / kWarpLanes;  // the same for special functions
constexpr double kSharedPasses = 1;

}  // namespace

std::array<WorkBound, 6> unit_times(const Work& work, const UnitRates& rates) {
  const double clocks = rates.fp32_flops / (2.0 * rates.fp32_lanes);
  const auto time = [](double amount, double rate) { return Seconds{amount / rate}; };
  return {{{time(static_cast<double>(work.memory_bytes), rates.memory_bytes), "bytes"},
           {time(work.tensor_flops, rates.tensor_flops), "tensor cores"},
           {time(static_cast<double>(work.fp32), clocks * rates.fp32_lanes / kWarpLanes), "fp32"},
           {time(static_cast<double>(work.special), clocks * kSpecial), "special functions"},
           {time(static_cast<double>(work.issued), clocks * kIssued), "issue slots"},
           {time(static_cast<double>(work.shared_passes), clocks * kSharedPasses), "shared memory"}}};
}

WorkBound bound_of(const Work& work, const UnitRates& rates) {
  const std::array<WorkBound, 6> needs = unit_times(work, rates);
  return *std::ranges::max_element(needs, {}, &WorkBound::time);
}

}  // namespace plumb::test::ptx
