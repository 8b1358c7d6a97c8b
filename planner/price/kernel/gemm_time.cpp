#include "planner/price/kernel/gemm_time.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumb { inline namespace planner {
namespace {

/// An output tile: its edges in units of the middle tile, and the share of the peak efficiency that its kernel reaches.
struct Tile {
  double rows;
  double columns;
  double share;
};
constexpr Tile kTiles[] = {{2, 1, 1.0}, {1, 2, 1.0}, {1, 1, .95}, {1, .5, .80}, {.5, 1, .80}, {.5, .5, .60}};
constexpr double kSplitsOfK[] = {1, 2, 4, 8};  // parts into which K is divided

double tiled_seconds(const DeviceSpec& device, double peak, const GemmShape& shape, double bytes_per_second) {
  const double unit_rate = peak * device.gemm_efficiency / device.compute_units;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double rows = tile.rows * device.gemm_tile;
    const double columns = tile.columns * device.gemm_tile;
    const double tiles = std::ceil(shape.m / rows) * std::ceil(shape.n / columns) * shape.count;
    for (const double parts : kSplitsOfK) {
      const double waves = std::ceil(tiles * parts / device.compute_units);
      const double wave = 2 * rows * columns * (shape.k / parts) / (unit_rate * tile.share) + device.wave_fixed.count();
      constexpr double kPartialSum = 8;  // bytes of one fp32 element, written and read
      const double sums = parts > 1 ? parts * kPartialSum * shape.m * shape.n * shape.count / bytes_per_second : 0;
      best = std::min(best, waves * wave + sums);
    }
  }
  return best;
}

}  // namespace

Seconds gemm_time(const DeviceSpec& device, double peak_flops_per_second, const GemmShape& shape, double bytes) {
  const double bytes_per_second = device.memory_bytes_per_second * device.memory_efficiency;
  const double flops_seconds =
      device.gemm_tile > 1
          ? tiled_seconds(device, peak_flops_per_second, shape, bytes_per_second)
          : 2 * shape.m * shape.n * shape.k * shape.count / (peak_flops_per_second * device.gemm_efficiency);
  return device.gemm_fixed + Seconds{std::max(flops_seconds, bytes / bytes_per_second)};
}

}}  // namespace plumb::planner
