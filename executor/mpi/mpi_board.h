#pragma once
// Ranks that mpirun or srun has started meet by MPI before NCCL joins their GPUs.

#include <memory>

#include "executor/nccl/rank_board.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// Called by all ranks. What one of them tells reaches the others as its end does: stop_mpi_ranks() (joined.h). Throws
/// RunError as MpiWorld does, SpecError in a program without MPI.
std::unique_ptr<RankBoard> mpi_board(Seconds patience);

}}  // namespace plumb::executor
