// CudaMachine on a played CUDA: whole trainings, in orders that streams and events allow.

#include "executor/cuda/cuda_machine.h"

#include <doctest/doctest.h>
#include <nvtx3/nvToolsExt.h>

#include <string>
#include <vector>

#include "executor/device/run_device.h"
#include "executor/run.h"
#include "tests/executor/cuda/played_run.h"
#include "tests/executor/device/host_run.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("a training on a GPU has the cpu backend's losses, whatever order its streams and events allow") {
  for (const char* name : {"1f1b", "zb-v", "gpipe"}) {
    RunSpec spec = spec_of(untied_gpt_model(), make_schedule(name, {.ranks = 2, .microbatches = 4}));
    spec.steps = 3;
    const RunResult cpu = run(spec);
    std::vector<double> first;
    for (unsigned seed = 1; seed <= 6; ++seed) {
      CAPTURE(name);
      CAPTURE(seed);
      const PlayedRun trained = play(spec, {.parts = false}, {.seed = seed});
      check_losses(trained.result, cpu, 1e-6);
      if (first.empty()) first = trained.result.losses;
      CHECK(trained.result.losses == first);
      CHECK(trained.sharing == "streams on all 132 SMs");
    }
  }
}
