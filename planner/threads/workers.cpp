#include "planner/threads/workers.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <latch>
#include <mutex>
#include <thread>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

namespace plumb { inline namespace planner {
namespace {

/// One loop, from which threads take items.
class Loop {
 public:
  Loop(std::size_t count, const std::function<void(std::size_t)>& work) : count_(count), failed_(count), work_(work) {}

  void take_items() {
    for (std::size_t i = next_++; i < count_; i = next_++) {
      try {
        work_(i);
      } catch (...) {
        const std::lock_guard noting(mutex_);
        if (i < failed_) failure_ = std::current_exception();
        failed_ = std::min(failed_, i);
      }
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::size_t count_;
  std::size_t failed_;  ///< the least number of an item that threw
  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

struct Workers::Pool {
  explicit Pool(std::size_t threads) : threads(threads) {}
  boost::asio::thread_pool threads;
};

Workers::Workers(int threads) {
  const unsigned wanted = threads > 0 ? static_cast<unsigned>(threads) : std::thread::hardware_concurrency();
  others_ = std::max(1U, wanted) - 1;
  if (others_ > 0) pool_ = std::make_unique<Pool>(others_);
}

Workers::~Workers() = default;

void Workers::each(std::size_t count, const std::function<void(std::size_t)>& work) {
  Loop loop(count, work);
  const std::size_t helpers = count > 1 ? std::min(others_, count - 1) : 0;
  std::latch ended(static_cast<std::ptrdiff_t>(helpers));
  for (std::size_t helper = 0; helper < helpers; ++helper) {
    boost::asio::post(pool_->threads, [&] {
      loop.take_items();
      ended.count_down();
    });
  }
  loop.take_items();
  ended.wait();
  loop.rethrow();
}

}}  // namespace plumb::planner
