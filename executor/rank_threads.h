#pragma once
// Ranks as threads of this process, over one transport: what the backends share that need no launcher.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/transport/in_process_transport.h"
#include "schedules/process_grid.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

struct RankThreadsOptions {
  /// Called where a rank has failed and another has not ended a whole watchdog's time later: it hangs outside of the
  /// transport, and waiting for it would never end. It must not return. Empty: it is waited for.
  std::function<void(const std::string& reason)> stuck;
  InTransit in_transit;  ///< for tests: what becomes of messages on their way
};

/// The memory of ranks of one process. It outlives the transport's messages.
struct RankPools {
  explicit RankPools(int ranks);

  std::vector<TensorPool*> pool_pointers() const;

  std::vector<std::unique_ptr<TensorPool>> pools, host_pools;  ///< [rank]
};

/// Throws SpecError if the grid has more ranks than kMostThreads (schedules/limits.h).
void require_threads(const ProcessGrid& grid);

/// Runs work(rank) on a thread each and returns when all have ended. The first that throws aborts `transport`, which
/// ends the others with RunAborted; what it has thrown is thrown here.
void run_rank_threads(int ranks, Transport& transport, Seconds watchdog, const RankThreadsOptions& options,
                      const std::function<void(int rank)>& work);

}}  // namespace plumb::executor
