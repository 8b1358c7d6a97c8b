#pragma once
// A training by CudaMachine on the played CUDA, which has nothing to find fault with.

#include <doctest/doctest.h>

#include <string>

#include "executor/cuda/cuda_machine.h"
#include "executor/device/run_device.h"
#include "executor/transport/transport.h"
#include "tests/executor/cuda/played/played.h"

namespace plumb::test {

/// One text a fault; empty: nothing was forbidden, and nothing is left over.
inline std::string played_faults() {
  std::string text;
  for (const std::string& fault : played::faults()) text += fault + "\n";
  return text;
}

struct PlayedRun {
  RunResult result;
  std::string sharing;
  played::Counts counts;
};

inline PlayedRun play(const RunSpec& spec, const CudaSharing& how = {}, const played::Options& options = {},
                      const DeviceRunOptions& run_options = {}) {
  played::restart(options);
  PlayedRun played;
  try {
    cuda::CudaMachine machine(0, spec.half, how);
    played.result = run_device(spec, machine, run_options);
    played.sharing = machine.sharing();
  } catch (const RunError& error) {
    const std::string text = std::string(error.what()) + "\n" + played_faults();
    FAIL_CHECK(text);
    throw;
  }
  played.counts = played::counts();
  CHECK(played_faults().empty());
  if (!played_faults().empty()) MESSAGE(played_faults());
  return played;
}

}  // namespace plumb::test
