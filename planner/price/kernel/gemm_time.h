#pragma once
// The time of a product by its output tiles, before any measured table corrects it.
//
//   t = fixed + max(min over tiles of waves * (2 tm tn K / (e te P / units) + wave_fixed), bytes / (b B))
//
// A device of `units` multiprocessors computes an output tile on each; ceil(tiles / units) waves follow each other
// (NVIDIA, Matrix Multiplication Background User's Guide: tile and wave quantisation). The library is assumed to pick
// the fastest of its tiles: 2x1, 1x2, 1x1, 1x1/2, 1/2x1 and 1/2x1/2 times `gemm_tile`. Small tiles reach a share te of
// the peak efficiency. It also picks the fastest division of K into 1, 2, 4 or 8 parts, which cost fp32 partial sums in
// memory. Without `gemm_tile` (1) the time is a roofline of the exact product (Williams et al. 2009).

#include "planner/spec/cluster_spec.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// `count` products [m,k] x [k,n].
struct GemmShape {
  double m = 0;
  double n = 0;
  double k = 0;
  double count = 1;
};

/// Returns the time of a product. `bytes` are all that must cross memory once; `peak_flops_per_second` is the data
/// sheet's, for the products' precision.
Seconds gemm_time(const DeviceSpec& device, double peak_flops_per_second, const GemmShape& shape, double bytes);

}}  // namespace plumb::planner
