#pragma once
// Turns the errors of CUDA and cuBLAS into exceptions inside the library.

#include <cublasLt.h>
#include <cuda_runtime.h>

#include "schedules/time.h"

namespace plumb { inline namespace executor { namespace cuda {

/// Throws RunError, "<what>: <CUDA's words> (<its name for the error>)", if the call failed.
void check(cudaError_t error, const char* what);
void check(cublasStatus_t status, const char* what);

/// Returns the time between two events that are over; it is negative if `to` was first. Throws as check() does.
Seconds time_between(cudaEvent_t from, cudaEvent_t to);

}}}  // namespace plumb::executor::cuda
