#pragma once
// Products, by OpenBLAS, of matrices that lie inside larger row-major ones, as attention needs them.

#include <cstdint>

#include "kernels/cpu/products/blas.h"

namespace plumb { inline namespace kernels {

/// A row-major matrix inside a larger one.
struct Panel {
  const float* data;
  std::int64_t stride;  ///< elements from a row to the next
};

inline blasint as_blas(std::int64_t size) {
  return static_cast<blasint>(size);
}

/// result [m, n] (stride) = alpha * a [m, k] * b [n, k]^T
inline void multiply_transposed(float* result, std::int64_t stride, Panel a, Panel b, std::int64_t m, std::int64_t n,
                                std::int64_t k, float alpha) {
  blas().sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, as_blas(m), as_blas(n), as_blas(k), alpha, a.data,
               as_blas(a.stride), b.data, as_blas(b.stride), 0.0F, result, as_blas(stride));
}

/// result [m, n] (stride) = a [m, k] * b [k, n]; with `add` the product is added to the result
inline void multiply(float* result, std::int64_t stride, Panel a, Panel b, std::int64_t m, std::int64_t n,
                     std::int64_t k, bool add = false) {
  blas().sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, as_blas(m), as_blas(n), as_blas(k), 1.0F, a.data,
               as_blas(a.stride), b.data, as_blas(b.stride), add ? 1.0F : 0.0F, result, as_blas(stride));
}

/// result [m, n] (stride) += a [k, m]^T * b [k, n]
inline void accumulate_transposed(float* result, std::int64_t stride, Panel a, Panel b, std::int64_t m, std::int64_t n,
                                  std::int64_t k) {
  blas().sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, as_blas(m), as_blas(n), as_blas(k), 1.0F, a.data,
               as_blas(a.stride), b.data, as_blas(b.stride), 1.0F, result, as_blas(stride));
}

}}  // namespace plumb::kernels
