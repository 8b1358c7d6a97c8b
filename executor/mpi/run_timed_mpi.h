#pragma once
// The timed backend with a process a rank, started by mpirun or srun, over the network that is there.

#include <optional>

#include "executor/timed/run_timed.h"

namespace plumb { inline namespace executor {

/// Called by all ranks. Rank 0 gets the result, the others nothing. `options.interrupted` receives on each rank the
/// part of the replay that this rank has done; `options.threads` has no use here. Throws RunError or SpecError as
/// run_timed does, and SpecError if there are not as many ranks as the schedule needs or they were given different
/// specifications. A rank that throws ends the others with stop_mpi_ranks (joined.h).
std::optional<TimedResult> run_timed_mpi(const TimedSpec& spec, const TimedOptions& options = {});

}}  // namespace plumb::executor
