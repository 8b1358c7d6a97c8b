#pragma once
// Runs a GPU kernel's body on the host: the lanes of a block are threads, sync() is their barrier, and blocks come one
// after the other. A body that forgets a sync() is a data race here, which ThreadSanitizer sees.

#include <barrier>
#include <limits>
#include <thread>
#include <vector>

namespace plumb::test {

class HostThread {
 public:
  HostThread(int block, int blocks, int lane, int lanes, float* shared, std::barrier<>& barrier)
      : block_(block), blocks_(blocks), lane_(lane), lanes_(lanes), shared_(shared), barrier_(&barrier) {}

  int block() const { return block_; }
  int blocks() const { return blocks_; }
  int lane() const { return lane_; }
  int lanes() const { return lanes_; }
  float* shared() const { return shared_; }
  void sync() const { barrier_->arrive_and_wait(); }

 private:
  int block_, blocks_, lane_, lanes_;
  float* shared_;
  std::barrier<>* barrier_;
};

template <class Body>
void run_on_host(const Body& body, int blocks, int lanes) {
  std::barrier barrier(lanes);
  std::vector<float> shared(static_cast<std::size_t>(lanes), std::numeric_limits<float>::quiet_NaN());
  const auto run_lane = [&](int lane) {
    for (int block = 0; block < blocks; ++block) {
      body(HostThread(block, blocks, lane, lanes, shared.data(), barrier));
      barrier.arrive_and_wait();  // the next block uses the same lanes
    }
  };
  std::vector<std::jthread> threads;
  for (int lane = 1; lane < lanes; ++lane) threads.emplace_back(run_lane, lane);
  run_lane(0);
}

}  // namespace plumb::test
