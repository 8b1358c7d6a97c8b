#include "executor/cuda/check_cuda.h"

#include <fmt/format.h>

#include "executor/transport/transport.h"

namespace plumb::cuda {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw RunError(fmt::format("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)));
}

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw RunError(fmt::format("{}: {} ({})", what, cublasLtGetStatusString(status), cublasLtGetStatusName(status)));
}

}  // namespace plumb::cuda
