#pragma once
// Ranks that are threads of this process and share one transport. The backends that need no launcher use these
// functions.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/transport/in_process_transport.h"
#include "schedules/process_grid.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

struct RankThreadsOptions {
  /// Called if a rank has failed and another has not ended a whole watchdog's time later. Such a rank hangs outside of
  /// the transport, and waiting for it would never end. The function must not return. If it is empty, the rank is
  /// waited for.
  std::function<void(const std::string& reason)> stuck;
  InTransit in_transit;  ///< for tests: sees, and may change, each message under way
};

/// The memory pools of the ranks of one process. They must outlive the transport's messages.
struct RankPools {
  explicit RankPools(int ranks);

  std::vector<TensorPool*> pool_pointers() const;

  std::vector<std::unique_ptr<TensorPool>> pools, host_pools;  ///< [rank]
};

/// Throws SpecError if the grid has more ranks than kMostThreads (schedules/limits.h).
void require_threads(const ProcessGrid& grid);

/// Runs work(rank) on one thread for each rank and returns when all have ended. The first work that throws aborts
/// `transport`, which ends the others with RunAborted. This function then throws the same exception.
void run_rank_threads(int ranks, Transport& transport, Seconds watchdog, const RankThreadsOptions& options,
                      const std::function<void(int rank)>& work);

}}  // namespace plumb::executor
