#pragma once
// CUDA's and cuBLAS's errors as exceptions inside the library.

#include <cublasLt.h>
#include <cuda_runtime.h>

namespace plumb::cuda {

/// Throws RunError, "<what>: <CUDA's words> (<its name for the error>)", unless all is well.
void check(cudaError_t error, const char* what);
void check(cublasStatus_t status, const char* what);

}  // namespace plumb::cuda
