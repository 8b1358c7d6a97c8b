#pragma once
// Whether mpirun or srun has started this process beside others. Known without MPI.

namespace plumb { inline namespace executor {

/// How many ranks were started together, by the environment of Open MPI, MPICH (PMI) and Slurm; 0 where none of them
/// started this process.
int launched_ranks();

/// Which of them this is; 0 where none started it.
int launched_rank();

/// Which of those on its machine this is, by which it takes its GPU; 0 where none started it.
int launched_local_rank();

}}  // namespace plumb::executor
