#pragma once
// The board at which ranks that mpirun or srun has started meet by MPI, before NCCL joins their GPUs.

#include <memory>

#include "executor/transport/nccl/rank_board.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// Returns the board; called by all ranks. A fault that one rank tells reaches the others as a message of its own
/// (MpiWorld::call_out). Throws RunError as MpiWorld does, and SpecError in a program without MPI.
std::unique_ptr<RankBoard> mpi_board(Seconds patience);

}}  // namespace plumb::executor
