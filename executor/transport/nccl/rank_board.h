#pragma once
// The rendezvous of the ranks of a run before NCCL can join them: each rank brings a text, and all ranks get all texts.
// They meet by MPI (executor/transport/mpi/mpi_board.h) or in a shared folder (folder_board.h).
//
// Boards cross the border of libplumb_cuda.so, so no member function throws.

#include <cstdint>
#include <string>
#include <vector>

#include "executor/transport/nccl/nccl_call.h"
#include "executor/transport/nccl/nccl_port.h"

namespace plumb { inline namespace executor {

class RankBoard {
 public:
  virtual ~RankBoard() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// Exchanges texts. All ranks call it equally often. `all` becomes [rank] the text of each rank. Returns the text of
  /// the fault, or an empty text.
  virtual std::string exchange(const std::string& own, std::vector<std::string>& all) = 0;

  /// Tells the others that this rank has failed; only the first fault counts. Returns false if another rank has told a
  /// fault before, which may be the cause.
  virtual bool tell(const std::string& fault) = 0;
  /// Returns the fault that another rank has told, or an empty text.
  virtual std::string told() = 0;
};

/// Calls exchange(). Throws RunError if it returns a fault.
std::vector<std::string> exchanged(RankBoard& board, const std::string& own);

/// Throws RunAborted if another rank has told that it failed.
void stop_if_told(RankBoard& board);

/// Throws SpecError, on all ranks alike, with the ranks whose fingerprint differs from rank 0's.
void require_same_plan(RankBoard& board, std::uint64_t fingerprint);

/// `device` identifies a GPU as NCCL does (host and bus). Throws SpecError, on all ranks alike, with two ranks whose
/// device is the same.
void require_devices_apart(RankBoard& board, const std::string& device);

/// Returns [communicator] the ids, on all ranks; the first rank of each communicator makes its id.
std::vector<NcclId> hand_out_ids(RankBoard& board, const std::vector<CommunicatorRanks>& communicators, NcclPort& port);

}}  // namespace plumb::executor
