#pragma once
// Runs a body for tensor cores (kernels/simt/warp.h) on a device of compute capability 8.0 or later.

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/simt/warp.h"

namespace plumb { inline namespace kernels { namespace cuda {

class Warp {
 public:
  template <class T>
  class PerLane {
   public:
    __device__ T& of(int) { return own_; }
    __device__ const T& of(int) const { return own_; }

   private:
    T own_;
  };

  __device__ int index() const { return static_cast<int>(threadIdx.x) / simt::kWarpLanes; }

  template <class Body>
  __device__ void each_lane(const Body& body) const {
    body(static_cast<int>(threadIdx.x) % simt::kWarpLanes);
  }

  using Address = std::uint32_t;  // in the shared state space
  __device__ static Address address_of(const void* shared) {
    auto address = static_cast<Address>(__cvta_generic_to_shared(shared));
    // The compiler must not keep what follows from the address over a loop: registers are scarcer than its arithmetic.
    asm volatile("" : "+r"(address));
    return address;
  }

  template <bool transposed>
  __device__ void load_matrices(PerLane<simt::FragmentWords>& words, const PerLane<Address>& rows, int flipped,
                                int moved) const {
    std::uint32_t(&to)[4] = words.of(0).word;
    const Address from = (rows.of(0) ^ static_cast<Address>(flipped)) + static_cast<Address>(moved);
    if constexpr (transposed)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                   : "r"(from)
                   : "memory");
    else
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                   : "r"(from)
                   : "memory");
  }

  template <class S>
  __device__ void multiply_add(PerLane<simt::FragmentSums>& sums, const PerLane<simt::FragmentWords>& left,
                               const PerLane<simt::FragmentWords>& right, int first) const {
    float(&c)[4] = sums.of(0).sum;
    const std::uint32_t(&a)[4] = left.of(0).word;
    const std::uint32_t b[2] = {right.of(0).word[first], right.of(0).word[first + 1]};
    if constexpr (std::is_same_v<S, Bf16>)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }

  __device__ void exchange(PerLane<float>& values, int mask) const {
    values.of(0) = __shfl_xor_sync(0xFFFFFFFFU, values.of(0), mask);
  }
};

class WarpBlock {
 public:
  using Warp = cuda::Warp;
  template <class State>
  using PerWarp = State;

  explicit __device__ WarpBlock(std::byte* shared) : shared_(shared) {}

  __device__ int block() const { return static_cast<int>(blockIdx.x); }
  __device__ int blocks() const { return static_cast<int>(gridDim.x); }
  __device__ std::byte* shared() const { return shared_; }
  template <class Body>
  __device__ void each_warp(const Body& body) const {
    body(Warp());
  }
  template <class State>
  __device__ static State& of(State& state, const Warp&) {
    return state;
  }
  __device__ void start_copy(void* to, const void* from, bool is_there) const {
    const auto target = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
    const int bytes = is_there ? 16 : 0;  // bytes to read; the rest of the 16 becomes zeros
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(__cvta_generic_to_global(from)),
                 "r"(bytes)
                 : "memory");
  }
  __device__ void settle_copies() const { asm volatile("cp.async.wait_all;" ::: "memory"); }
  __device__ void sync() const { __syncthreads(); }

 private:
  std::byte* shared_;
};

template <class Body>
__global__ void __launch_bounds__(Body::kWarps* simt::kWarpLanes) run_warps(Body body) {
  extern __shared__ __align__(256) std::byte shared_bytes[];
  body(WarpBlock(shared_bytes));
}

/// Lets the body have its shared memory on the current device. It asks each device once, since the permission is each
/// device's own.
template <class Body>
cudaError_t allow_shared_bytes() {
  constexpr int kDevices = 64;
  static std::array<std::atomic<bool>, kDevices> allowed{};
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  if (device < kDevices && allowed[static_cast<std::size_t>(device)]) return cudaSuccess;
  const cudaError_t error = cudaFuncSetAttribute(run_warps<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                 static_cast<int>(Body::kSharedBytes));
  if (error == cudaSuccess && device < kDevices) allowed[static_cast<std::size_t>(device)] = true;
  return error;
}

/// Enqueues the body on `stream`. Returns an error of the launch itself, and does not wait.
template <class Body>
cudaError_t launch_warps(const Body& body, int blocks, cudaStream_t stream) {
  constexpr std::int64_t kWithoutAsking = 48 << 10;
  if constexpr (Body::kSharedBytes > kWithoutAsking)
    if (const cudaError_t error = allow_shared_bytes<Body>(); error != cudaSuccess) return error;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(blocks));
  launch.blockDim = dim3(Body::kWarps * simt::kWarpLanes);
  launch.dynamicSmemBytes = static_cast<std::size_t>(Body::kSharedBytes);
  launch.stream = stream;
  return cudaLaunchKernelEx(&launch, run_warps<Body>, body);
}

}}}  // namespace plumb::kernels::cuda
