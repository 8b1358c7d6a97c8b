#include "executor/cuda/check_cuda.h"

#include <fmt/format.h>

#include "executor/transport/transport.h"

namespace plumb::cuda {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw RunError(fmt::format("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)));
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const cudaError_t cause = cudaPeekAtLastError();
  throw RunError(fmt::format("{}: {} ({}){}", what, cublasLtGetStatusString(status), cublasLtGetStatusName(status),
                             cause == cudaSuccess ? ""
                                                  : fmt::format("; the last error of CUDA: {} ({})",
                                                                cudaGetErrorString(cause), cudaGetErrorName(cause))));
}

}  // namespace plumb::cuda
