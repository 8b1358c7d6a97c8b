// Compares every kernel on a GPU with the same kernel on the host, with sizes (odd ones among them) and values from a
// seed.
//
//   kernels_on_gpu [TRIES [SEED]]     tries of every kernel in every format (default: 4), and a seed (default: random)
//
// Exit 0: all agree up to rounding; 1: some do not, or the GPU failed; 77: there is no GPU.

#include <cuda_runtime.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <random>

#include <fmt/format.h>

#include "executor/machines/cuda/cuda_machine.h"
#include "tests/executor/kernels/kernel_comparison.h"

namespace plumb::test { namespace {

constexpr int kNoGpu = 77;

int run(const ComparisonOptions& options) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    fmt::print("skipped: there is no GPU here that CUDA can use ({})\n", cudaGetErrorString(error));
    return kNoGpu;
  }
  return compare_with_host(
      [](std::optional<HalfFormat> half) { return TestedMachine{std::make_unique<cuda::CudaMachine>(0, half)}; },
      options);
}

}}  // namespace plumb::test

int main(int count, char** arguments) {
  const auto number = [&](int i) { return static_cast<unsigned>(std::strtoul(arguments[i], nullptr, 10)); };
  plumb::test::ComparisonOptions options;
  if (count > 1) options.tries = number(1);
  options.seed = count > 2 ? number(2) : std::random_device()();
  return plumb::test::run(options);
}
