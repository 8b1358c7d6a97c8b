#pragma once
// Powers of two and of e, logarithms and reciprocals as fast as a GPU has them.

#include <cmath>

#include "kernels/simt/simt.h"

namespace plumb { inline namespace kernels {

inline constexpr float kLog2E = 1.4426950408889634F;
inline constexpr float kLn2 = 0.6931471805599453F;

/// Returns 2^x. A GPU computes it in one instruction, with a relative error of at most 2^-22 and 0 in place of results
/// below 2^-126 (PTX ISA 9.0, "ex2").
PLUMB_SIMT float power_of_two(float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return exp2f(x);
#endif
}

/// Returns log2(x), to 2^-22 or a relative error of as much (PTX ISA 9.0, "lg2").
PLUMB_SIMT float binary_logarithm(float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return log2f(x);
#endif
}

/// Returns 1/x, to a relative error of 2^-23, and 0 for infinity (PTX ISA 9.0, "rcp").
PLUMB_SIMT float reciprocal(float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1 / x;
#endif
}

/// Returns e^x, to the same error and that of the product of x and log2(e) in fp32.
PLUMB_SIMT float power_of_e(float x) {
  return power_of_two(x * kLog2E);
}

}}  // namespace plumb::kernels
