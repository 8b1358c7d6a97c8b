// Compares every kernel, as CudaMachine enqueues it on the played CUDA, with the host's; tests/gpu/kernels_on_gpu.cpp
// does the same on a GPU.

#include <doctest/doctest.h>

#include <memory>
#include <optional>

#include "tests/executor/kernels/kernel_comparison.h"
#include "tests/executor/machines/cuda/played_run.h"
#include "tests/executor/machines/host_machine.h"

namespace plumb::test {

TEST_CASE("every kernel does on a GPU what it does on the host, in every format, and touches nothing else") {
  const unsigned first = std::random_device()();
  for (const std::optional<HalfFormat> half :
       {std::optional<HalfFormat>{}, std::optional(HalfFormat::kBf16), std::optional(HalfFormat::kFp16)}) {
    played::restart({.seed = first});
    {
      cuda::CudaMachine machine(0, half);
      HostMachine host(half);
      KernelBench ours(machine), reference(host);
      unsigned seed = first;
      for (const KernelCase& of : kernel_cases()) {
        INFO(of.name << (half ? *half == HalfFormat::kBf16 ? " in bf16" : " in fp16" : " in fp32") << ", seed "
                     << seed);
        CHECK(difference_on(ours, reference, of, half, seed++) == "");
      }
    }
    const std::string faults = played_faults();
    CHECK(faults == "");
  }
}

}  // namespace plumb::test
