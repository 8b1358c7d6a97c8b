#pragma once
// OpenBLAS, opened by the first product. Once loaded it keeps a thread for every core, and most commands multiply
// nothing.

#include <cblas.h>

namespace plumb { inline namespace kernels {

struct BlasFunctions {
  decltype(&cblas_sgemm) sgemm;
  decltype(&openblas_set_num_threads) set_num_threads;
  decltype(&openblas_get_corename) get_corename;
};

/// Throws std::runtime_error if there is no libopenblas.so.0.
const BlasFunctions& blas();

}}  // namespace plumb::kernels
