#pragma once
// Soft-capping on a GPU (kernels/cpu/softcap.h has the formulas).

#include <cmath>

#include "kernels/simt/simt.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Returns the value under the cap, or the value itself for a cap of 0.
PLUMB_SIMT float softcapped(float value, float cap) {
  return cap > 0 ? cap * tanhf(value / cap) : value;
}

/// Returns the derivative at the place that was taken to `capped`.
PLUMB_SIMT float softcap_slope(float capped, float cap) {
  return cap > 0 ? 1.0F - capped / cap * (capped / cap) : 1.0F;
}

}}}  // namespace plumb::kernels::simt
