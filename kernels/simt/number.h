#pragma once
// Numbers as tensors store them. Kernels compute in fp32: a number that they read is widened, and one that they write
// is rounded to the nearest, ties to even.

#include <cstdint>

#include "kernels/simt/simt.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "kernels/cpu/half.h"

namespace plumb { inline namespace kernels {

struct Bf16 {
  std::uint16_t bits = 0;
};
struct Fp16 {
  std::uint16_t bits = 0;
};

PLUMB_SIMT float widened(float number) {
  return number;
}
PLUMB_SIMT float widened(Bf16 number) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(static_cast<unsigned>(number.bits) << 16);
#else
  return widen_bf16(number.bits);
#endif
}
PLUMB_SIMT float widened(Fp16 number) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(number.bits));
#else
  return widen_fp16(number.bits);
#endif
}

PLUMB_SIMT void store(float& to, float value) {
  to = value;
}
PLUMB_SIMT void store(Bf16& to, float value) {
#ifdef __CUDA_ARCH__
  to.bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
  to.bits = narrow_to_bf16(value);
#endif
}
PLUMB_SIMT void store(Fp16& to, float value) {
#ifdef __CUDA_ARCH__
  to.bits = __half_as_ushort(__float2half_rn(value));
#else
  to.bits = narrow_to_fp16(value);
#endif
}

}}  // namespace plumb::kernels
