#pragma once
// Where the ranks of a run meet before NCCL can join them: what one brings, all get. Threads of a process meet in
// memory (thread_board.h), processes by MPI (executor/mpi/mpi_board.h) or in a shared folder (folder_board.h).
//
// Boards cross the border of libplumb_cuda.so: nothing here throws.

#include <cstdint>
#include <string>
#include <vector>

#include "executor/nccl/nccl_call.h"
#include "executor/nccl/nccl_port.h"

namespace plumb { inline namespace executor {

class RankBoard {
 public:
  virtual ~RankBoard() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// Called by all ranks, as often by each. `all` becomes [rank] what each has brought. Returns what was wrong, and an
  /// empty text if nothing was.
  virtual std::string exchange(const std::string& own, std::vector<std::string>& all) = 0;

  /// Lets the others know that this rank has failed; what it tells later changes nothing. False if another has told
  /// before, whose fault it may be.
  virtual bool tell(const std::string& fault) = 0;
  /// What another rank has told; empty as long as none has.
  virtual std::string told() = 0;
};

/// exchange(); throws RunError with what was wrong.
std::vector<std::string> exchanged(RankBoard& board, const std::string& own);

/// Throws RunAborted if another rank has told that it failed.
void stop_if_told(RankBoard& board);

/// Throws SpecError, the same on all ranks, that names those whose fingerprint is not rank 0's.
void require_same_plan(RankBoard& board, std::uint64_t fingerprint);

/// device: what tells a GPU from all others, as NCCL tells them apart (host and bus). Throws SpecError, the same on all
/// ranks, that names two with the same.
void require_devices_apart(RankBoard& board, const std::string& device);

/// [communicator] made by its first rank, on all ranks.
std::vector<NcclId> hand_out_ids(RankBoard& board, const std::vector<NcclCommunicator>& communicators, NcclPort& port);

}}  // namespace plumb::executor
