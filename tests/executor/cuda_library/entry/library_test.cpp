// The functions of libplumb_cuda.so, on a played CUDA.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "executor/cuda_library/cuda_library.h"
#include "executor/training/run.h"
#include "tests/executor/machines/cuda/played_run.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {

extern "C" const CudaLibrary* plumb_cuda_library();

TEST_CASE("the library tells which GPUs there are, or why there is none") {
  const CudaLibrary& library = *plumb_cuda_library();
  CHECK(std::string(library.version) == PLUMB_VERSION);
  std::vector<CudaDevice> found;
  played::restart({.devices = 2});
  CHECK(library.devices(found) == "");
  REQUIRE(found.size() == 2);
  CHECK(found[1].name == "a GPU played by the host");
  CHECK(found[1].multiprocessors == 132);
  CHECK(found[1].memory_bytes == 1 << 30);
  CHECK(found[1].driver == "13.0");
  played::restart({.devices = 0});
  CHECK(library.devices(found) == "there is no GPU here that CUDA can use (the driver has none): use --backend cpu");
  played::restart({.devices = 1, .has_driver = false});
  CHECK(library.devices(found) ==
        "there is no GPU here that CUDA can use (no CUDA-capable device is detected): use --backend cpu");
}

TEST_CASE("a run across the border has the cpu backend's losses, and what goes wrong is a text") {
  const CudaLibrary& library = *plumb_cuda_library();
  RunSpec spec = spec_of(llama_model(), make_schedule("1f1b", {.ranks = 2, .microbatches = 4}));
  spec.steps = 3;
  played::restart({.seed = 3});
  RunResult result;
  std::string sharing;
  CHECK(library.run(spec, {.graph = true}, {}, result, sharing) == "");
  CHECK(sharing == "green contexts of 64 and 64 SMs, launched as a graph");
  check_losses(result, run(spec), 1e-6);
  CHECK(played_faults() == "");
  CHECK(library.run(spec, {.shares = {1, 0}}, {}, result, sharing) ==
        "2 shares of the SMs for 2 ranks: give one above 0 for each rank");
  CHECK(played_faults() == "");
  played::restart({.has_driver = false});
  CHECK(library.run(spec, {}, {}, result, sharing) ==
        "the GPU: no CUDA-capable device is detected (cudaErrorNoDevice)");
}

}  // namespace plumb::test
