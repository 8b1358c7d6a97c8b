#pragma once
// The board at which ranks that mpirun or srun has started meet by MPI, before NCCL joins their GPUs.

#include <memory>

#include "executor/nccl/rank_board.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// Returns the board; called by all ranks. What one rank tells reaches the others in the same way as its end does:
/// stop_mpi_ranks() (joined.h). Throws RunError as MpiWorld does, and SpecError in a program without MPI.
std::unique_ptr<RankBoard> mpi_board(Seconds patience);

}}  // namespace plumb::executor
