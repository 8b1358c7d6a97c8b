#include "kernels/cpu/products/gemm.h"

#include "kernels/cpu/products/blas.h"
#include "kernels/cpu/products/panel.h"

namespace plumb { inline namespace kernels {
void linear_forward(float* y, const float* x, const float* weight, const GemmSize& size) {
  linear_forward(y, x, weight, size, {.x = size.k, .y = size.n});
}

void linear_input_grad(float* dx, const float* dy, const float* weight, const GemmSize& size) {
  linear_input_grad(dx, dy, weight, size, {.x = size.n, .y = size.k});
}

void linear_weight_grad(float* dweight, const float* dy, const float* x, const GemmSize& size) {
  linear_weight_grad(dweight, dy, x, size, {.x = size.n, .y = size.m});
}

void linear_forward(float* y, const float* x, const float* weight, const GemmSize& size, const GemmStrides& strides) {
  blas().sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, as_blas(size.m), as_blas(size.n), as_blas(size.k), 1.0F, x,
               as_blas(strides.x), weight, as_blas(size.k), 0.0F, y, as_blas(strides.y));
}

void linear_input_grad(float* dx, const float* dy, const float* weight, const GemmSize& size,
                       const GemmStrides& strides) {
  blas().sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, as_blas(size.m), as_blas(size.n), as_blas(size.k), 1.0F, dy,
               as_blas(strides.y), weight, as_blas(size.n), 0.0F, dx, as_blas(strides.x));
}

void linear_weight_grad(float* dweight, const float* dy, const float* x, const GemmSize& size,
                        const GemmStrides& strides) {
  blas().sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, as_blas(size.m), as_blas(size.n), as_blas(size.k), 1.0F, dy,
               as_blas(strides.y), x, as_blas(strides.x), 1.0F, dweight, as_blas(size.n));
}

void use_one_blas_thread() {
  blas().set_num_threads(1);
}

std::string blas_core() {
  return blas().get_corename();
}

std::optional<std::string> better_blas_core() {
#if defined(__x86_64__)
  if (blas_core() != "Prescott") return std::nullopt;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return std::nullopt;
}

}}  // namespace plumb::kernels
