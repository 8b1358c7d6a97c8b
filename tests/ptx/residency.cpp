#include "tests/ptx/residency.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <queue>
#include <vector>

namespace plumb::test::ptx {

Residency residency_of(const LaunchSize& size, int registers, const Multiprocessor& multiprocessor) {
  constexpr int kRegisterUnit = 256;
  constexpr std::int64_t kSystemBytes = 1 << 10;
  const int warps = (static_cast<int>(size.threads) + kWarpLanes - 1) / kWarpLanes;
  const int of_warp = (registers * kWarpLanes + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
  const std::array<Residency, 4> limits = {
      {{multiprocessor.registers / std::max(of_warp * warps, 1), "registers"},
       {static_cast<int>(multiprocessor.shared_bytes / (size.shared_bytes + kSystemBytes)), "shared memory"},
       {multiprocessor.warps / warps, "warps"},
       {multiprocessor.blocks, "blocks"}}};
  return *std::ranges::min_element(limits, {}, &Residency::blocks);
}

double tail_ratio(std::span<const std::int64_t> work, int places, int copies) {
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_at;
  for (int i = 0; i < places; ++i) free_at.push(0);
  std::int64_t end = 0;
  for (const std::int64_t own : work)
    for (int i = 0; i < copies; ++i) {
      const std::int64_t finished = free_at.top() + own;
      free_at.pop();
      free_at.push(finished);
      end = std::max(end, finished);
    }
  const std::int64_t all = std::reduce(work.begin(), work.end()) * copies;
  return all == 0 ? 1.0 : static_cast<double>(end) * places / static_cast<double>(all);
}

}  // namespace plumb::test::ptx
