#pragma once
// Helpers for trainings by CudaMachine on the played CUDA, which must find no fault.

#include <doctest/doctest.h>

#include <string>

#include "executor/machines/cuda/cuda_machine.h"
#include "executor/training/device/run_device.h"
#include "executor/transport/transport.h"
#include "tests/executor/machines/cuda/played/played.h"

namespace plumb::test {

/// Returns the faults, a line each; empty: nothing was forbidden, and nothing is left over.
inline std::string played_faults() {
  std::string text;
  for (const std::string& fault : played::faults()) text += fault + "\n";
  return text;
}

struct PlayedRun {
  RunResult result;
  std::string sharing;
  std::string error;
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
    played.error = error.what();
  }
  played.counts = played::counts();
  const std::string faults = played_faults();
  CHECK(faults == "");
  return played;
}

}  // namespace plumb::test
