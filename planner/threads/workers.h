#pragma once
// Threads that share the items of a loop.
//
//   Workers workers(2);
//   workers.each(sizes.size(), [&](std::size_t i) { prices[i] = price_of(sizes[i]); });

#include <cstddef>
#include <functional>
#include <memory>

namespace plumb { inline namespace planner {

class Workers {
 public:
  /// Starts so many threads less the caller's own; 0: one for each core.
  explicit Workers(int threads = 0);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Calls work(i) for each i below `count`, and returns when all calls have ended. Each item writes to places of its
  /// own, so that the results depend on neither the number of threads nor their pace. Rethrows what the item of the
  /// least number threw.
  void each(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;  ///< null: the caller's thread is the only one
  std::size_t others_ = 0;      ///< threads besides the caller's
};

}}  // namespace plumb::planner
