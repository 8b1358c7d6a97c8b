#pragma once
// Training on the cpu: ranks are threads of this process, or processes where mpirun or srun has started several.

#include <optional>
#include <string>

#include "executor/training/run.h"

namespace plumb { inline namespace tools {

/// Returns the listener that writes the interrupted step of a failed replay to `trace`, and nothing if that is empty.
/// Each of several processes writes a file of its own, trace.rank2.json.
InterruptionListener interrupted_trace(const std::string& trace);
/// Returns the options by which a rank that hangs ends this process with the reason.
RankThreadsOptions watched_threads();

/// Trains, and returns the result; of several processes, only the first returns one. Throws as run() and run_mpi().
std::optional<RunResult> run_on_cpu(const RunSpec& spec, RunOptions options, Seconds expected);

}}  // namespace plumb::tools
