#include "executor/transport/rank_threads.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "executor/spec/require.h"
#include "schedules/error.h"
#include "schedules/limits.h"

namespace plumb { inline namespace executor {
namespace {

/// The number of ranks that still run, and the first failure of any.
struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  int running = 0;
  std::exception_ptr failure;
  std::string reason;
};

void run_rank(const std::function<void(int)>& work, int rank, Transport& transport, Progress& progress) {
  try {
    work(rank);
  } catch (const RunAborted&) {
    // The rank that failed first has said why.
  } catch (const std::exception& error) {
    {
      const std::lock_guard lock(progress.mutex);
      if (progress.failure == nullptr) {
        progress.failure = std::current_exception();
        progress.reason = sentence_of(error);
      }
    }
    transport.abort(sentence_of(error));
  }
  const std::lock_guard lock(progress.mutex);
  --progress.running;
  progress.changed.notify_all();
}

}  // namespace

RankPools::RankPools(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    pools.push_back(std::make_unique<TensorPool>());
    host_pools.push_back(std::make_unique<TensorPool>());
  }
}

std::vector<TensorPool*> RankPools::pool_pointers() const {
  std::vector<TensorPool*> pointers;
  for (const auto& pool : pools) pointers.push_back(pool.get());
  return pointers;
}

void require_threads(const ProcessGrid& grid) {
  const double ranks = static_cast<double>(grid.tensor) * grid.context * grid.data * grid.pipeline;
  require(ranks <= kMostThreads, fmt::format("{:.0f} ranks are more than the {} threads that one machine runs: take "
                                             "fewer ranks or replicas",
                                             ranks, kMostThreads));
}

void run_rank_threads(int ranks, Transport& transport, Seconds watchdog, const RankThreadsOptions& options,
                      const std::function<void(int rank)>& work) {
  Progress progress;
  progress.running = ranks;
  std::vector<std::thread> threads;
  try {
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back(run_rank, std::cref(work), rank, std::ref(transport), std::ref(progress));
  } catch (const std::exception& error) {  // the machine has no more threads
    transport.abort(sentence_of(error));
    const std::lock_guard lock(progress.mutex);
    progress.failure = std::current_exception();
    progress.reason = sentence_of(error);
    progress.running -= ranks - static_cast<int>(threads.size());
  }
  {
    std::unique_lock lock(progress.mutex);
    const auto all_ended = [&] { return progress.running == 0; };
    progress.changed.wait(lock, [&] { return all_ended() || progress.failure != nullptr; });
    if (options.stuck && !progress.changed.wait_for(lock, watchdog, all_ended)) options.stuck(progress.reason);
  }
  for (std::thread& thread : threads) thread.join();
  if (progress.failure != nullptr) std::rethrow_exception(progress.failure);
}

}}  // namespace plumb::executor
