// Compares every kernel on a GPU with the same kernel on the host, with sizes (odd ones among them) and values from a
// seed.
//
//   kernels_on_gpu [TRIES [SEED]]     tries of every kernel in every format (default: 4), and a seed (default: random)
//
// Exit 0: all agree up to rounding; 1: some do not, or the GPU failed; 77: there is no GPU.

#include <cuda_runtime.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "executor/cuda/cuda_machine.h"
#include "executor/transport/transport.h"
#include "tests/executor/device/host_machine.h"
#include "tests/executor/device/kernels/kernel_comparison.h"

namespace plumb::test { namespace {

constexpr int kNoGpu = 77;

struct Tally {
  int passed = 0, failed = 0;
};

void compare_all(Tally& tally, std::optional<HalfFormat> half, const std::string& format, unsigned tries,
                 unsigned seed) {
  HostMachine host(half);
  KernelBench reference(host);
  for (const KernelCase& of : kernel_cases()) {
    try {
      cuda::CudaMachine machine(0, half);  // one for each kernel, so that the next runs where one fails
      KernelBench ours(machine);
      for (unsigned i = 0; i < tries; ++i, ++seed) {
        const std::string difference = difference_on(ours, reference, of, half, seed);
        ++(difference.empty() ? tally.passed : tally.failed);
        if (!difference.empty()) fmt::print("{} in {}, seed {}: {}\n", of.name, format, seed, difference);
      }
    } catch (const RunError& error) {
      fmt::print("{} in {}, seed {}: {}\n", of.name, format, seed, error.what());
      ++tally.failed;
    }
  }
}

int run(unsigned tries, unsigned seed) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    fmt::print("skipped: there is no GPU here that CUDA can use ({})\n", cudaGetErrorString(error));
    return kNoGpu;
  }
  Tally tally;
  compare_all(tally, {}, "fp32", tries, seed);
  compare_all(tally, HalfFormat::kBf16, "bf16", tries, seed);
  compare_all(tally, HalfFormat::kFp16, "fp16", tries, seed);
  fmt::print("{} kernels or chains of them, each {} times in 3 formats, from seed {} on\n", kernel_cases().size(),
             tries, seed);
  fmt::print("[cases] {} passed, {} failed\n", tally.passed, tally.failed);
  return tally.failed == 0 ? 0 : 1;
}

}}  // namespace plumb::test

int main(int count, char** arguments) {
  const auto number = [&](int i) { return static_cast<unsigned>(std::strtoul(arguments[i], nullptr, 10)); };
  return plumb::test::run(count > 1 ? number(1) : 4, count > 2 ? number(2) : std::random_device()());
}
