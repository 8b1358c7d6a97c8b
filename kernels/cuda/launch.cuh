#pragma once
// Runs a kernel's body (kernels/simt) on a device.

#include <cuda_runtime.h>

#include <cstddef>

#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace cuda {

/// A body's view of a device's thread. Blocks and threads are one-dimensional.
class Thread {
 public:
  explicit __device__ Thread(float* shared) : shared_(shared) {}

  __device__ int block() const { return static_cast<int>(blockIdx.x); }
  __device__ int blocks() const { return static_cast<int>(gridDim.x); }
  __device__ int lane() const { return static_cast<int>(threadIdx.x); }
  __device__ int lanes() const { return static_cast<int>(blockDim.x); }
  __device__ float* shared() const { return shared_; }
  __device__ void sync() const { __syncthreads(); }

 private:
  float* shared_;
};

template <class Body>
__global__ void run_body(Body body) {
  extern __shared__ float shared[];
  body(Thread(shared));
}

/// Enqueues the body on `stream`: `blocks` blocks of `lanes` threads, a power of two up to 1024. Returns an error of
/// the launch itself, and does not wait.
template <class Body>
cudaError_t launch(const Body& body, int blocks, int lanes, cudaStream_t stream) {
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(blocks));
  launch.blockDim = dim3(static_cast<unsigned>(lanes));
  launch.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes_of(lanes));
  launch.stream = stream;
  return cudaLaunchKernelEx(&launch, run_body<Body>, body);
}

}}}  // namespace plumb::kernels::cuda
