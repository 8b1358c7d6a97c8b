#pragma once
// CUDA's and cuBLAS's errors as exceptions inside the library.

#include <cublasLt.h>
#include <cuda_runtime.h>

#include "schedules/time.h"

namespace plumb { inline namespace executor { namespace cuda {

/// Throws RunError, "<what>: <CUDA's words> (<its name for the error>)", unless all is well.
void check(cudaError_t error, const char* what);
void check(cublasStatus_t status, const char* what);

/// Of two events that are over; below 0 where `to` was first. Throws as check() does.
Seconds time_between(cudaEvent_t from, cudaEvent_t to);

}}}  // namespace plumb::executor::cuda
