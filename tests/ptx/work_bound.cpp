#include "tests/ptx/work_bound.h"

#include <algorithm>
#include <array>

namespace plumb::test::ptx {
namespace {

constexpr double kIssued = 4;                   // instructions of a warp in a clock of a multiprocessor
constexpr double kSpecial = 16.0 / kWarpLanes;  // the same for special functions
constexpr double kSharedPasses = 1;

}  // namespace

WorkBound bound_of(const Work& work, const UnitRates& rates) {
  const double clocks = rates.fp32_flops / (2.0 * rates.fp32_lanes);
  const auto time = [](double amount, double rate) { return Seconds{amount / rate}; };
  const std::array<WorkBound, 6> needs = {
      {{time(static_cast<double>(work.memory_bytes), rates.memory_bytes), "bytes"},
       {time(work.tensor_flops, rates.tensor_flops), "tensor cores"},
       {time(static_cast<double>(work.fp32), clocks * rates.fp32_lanes / kWarpLanes), "fp32"},
       {time(static_cast<double>(work.special), clocks * kSpecial), "special functions"},
       {time(static_cast<double>(work.issued), clocks * kIssued), "issue slots"},
       {time(static_cast<double>(work.shared_passes), clocks * kSharedPasses), "shared memory"}}};
  return *std::ranges::max_element(needs, {}, &WorkBound::time);
}

}  // namespace plumb::test::ptx
