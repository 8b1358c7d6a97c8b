#include "executor/machines/cuda/check_cuda.h"

#include <fmt/format.h>

#include "executor/transport/transport.h"

namespace plumb { inline namespace executor { namespace cuda {

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

Seconds time_between(cudaEvent_t from, cudaEvent_t to) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, from, to), "the time between two events");
  return Seconds{1e-3 * static_cast<double>(milliseconds)};
}

}}}  // namespace plumb::executor::cuda
