#pragma once
// Says whether mpirun or srun has started this process beside others. Works without MPI.

namespace plumb { inline namespace executor {

/// Returns how many ranks were started together, by the environment of Open MPI, MPICH (PMI) and Slurm; 0 if none of
/// them started this process.
int launched_ranks();

/// Returns this process's rank; 0 if none of them started it.
int launched_rank();

/// Returns its number among the ranks of its machine, by which it takes its GPU; 0 if none of them started it.
int launched_local_rank();

}}  // namespace plumb::executor
