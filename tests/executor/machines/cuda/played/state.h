#pragma once
// The state of the played CUDA: handles, streams with their enqueued work, captures. One lock guards all of it; a
// thread that waits for the device does the device's work meanwhile.

#include <cuda.h>
#include <cuda_runtime.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/executor/machines/cuda/played/played.h"

namespace plumb::test::played {

/// One recording of an event.
struct Moment {
  bool is_over = false;
  std::int64_t ns = 0;
};
using MomentPtr = std::shared_ptr<Moment>;

/// Does its work, or returns false if it cannot do it yet. A kernel that waits for others calls State::note_progress()
/// once it runs.
using Work = std::function<bool()>;

struct Node {
  Work work;
  std::vector<std::size_t> behind;
};

/// The nodes of a capture.
struct Nodes {
  std::vector<Node> all;
};

/// A launch of a graph that is under way.
struct GraphRun {
  std::shared_ptr<const Nodes> nodes;
  std::vector<bool> is_over;
  std::size_t left = 0;
};

struct Capture {
  std::thread::id thread;
  cudaStream_t origin = nullptr;
  std::shared_ptr<Nodes> nodes = std::make_shared<Nodes>();
  std::set<cudaStream_t> streams;
  bool is_broken = false;
};
using CapturePtr = std::shared_ptr<Capture>;

struct Enqueued {
  Work work;
  std::shared_ptr<GraphRun> graph;  // the graph of a launch that has begun
  std::uint64_t number = 0;         // in the order of all that was enqueued
  bool has_begun = false;
};

struct Memory {
  std::int64_t bytes = 0;
  int device = 0;  // -1: memory of the host
};

struct Context {
  std::string sticky;  // name of the kernel that has failed
  std::set<cudaStream_t> streams;
  std::int64_t taken_bytes = 0;
  cudaStream_t legacy = nullptr;
  int made_streams = 0;
  int held_sms = 0;               // by kernels of NCCL that run
  std::set<std::string> kernels;  // names of those whose code is loaded
};

}  // namespace plumb::test::played

// CUDA's names for the handles.
struct CUstream_st {
  int device = 0;
  int multiprocessors = 0;
  int connection = -1;  // its hardware queue; -1: one of its own
  bool is_alive = true;
  unsigned long turn = 0;
  std::deque<plumb::test::played::Enqueued> queue;
  plumb::test::played::CapturePtr capture;
  std::vector<std::size_t> last;  // nodes that the next node of the capture comes behind
};
struct CUevent_st {
  int device = 0;
  bool has_time = true, is_alive = true;
  plumb::test::played::MomentPtr moment;  // null: never recorded
  bool was_reset_by_graph = false;
  plumb::test::played::CapturePtr capture;  // capture of its last recording
  std::vector<std::size_t> nodes;
};
struct CUgraph_st {
  bool is_alive = true;
  std::shared_ptr<const plumb::test::played::Nodes> nodes;
};
struct CUgraphExec_st {
  bool is_alive = true;
  std::shared_ptr<const plumb::test::played::Nodes> nodes;
};

namespace plumb::test::played {

class State {
 public:
  static State& get();

  std::mutex mutex;
  std::condition_variable moved;
  Options options;
  Counts counts;
  std::vector<std::string> faults;
  std::vector<std::string> ranges;
  std::mt19937 random;
  std::vector<Context> contexts;  // [device]
  std::map<std::byte*, Memory> memory;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::vector<std::unique_ptr<CUevent_st>> events;
  std::vector<std::unique_ptr<CUgraph_st>> graphs;
  std::vector<std::unique_ptr<CUgraphExec_st>> launchables;
  std::vector<CapturePtr> captures;          // those under way
  std::map<std::string, std::int64_t> open;  // handles of other libraries, by kind
  std::int64_t kernel = 0;
  std::vector<int> nccl_calls;  // [device]

  void fault(const std::string& function, const std::string& what) { faults.push_back(function + ": " + what); }

  /// Does a piece of the device's work. Returns false if there is none that can be done.
  bool step();
  /// Calls step() several times, as the host asks how far the device is.
  void step_on();
  /// Called by work that runs, or goes on, without being over.
  void note_progress() { has_progress_ = true; }
  /// Works until `is_over` returns true, or an error stays on the device.
  cudaError_t wait(std::unique_lock<std::mutex>& lock, int device, const std::function<bool()>& is_over,
                   const char* function);
  bool is_idle(int device) const;
  /// Makes a stream of the device, on the hardware queue whose turn it is. Lower priorities go first.
  cudaStream_t make_stream(int device, int multiprocessors, int priority);

  /// Returns the device's bus, e.g. "0000:01:00.0".
  std::string bus_of(int device) const;

  cudaError_t stream_of(cudaStream_t& stream, const char* function);
  /// Puts work on the stream, or into its capture, without waiting for room.
  void put(cudaStream_t stream, Enqueued work);
  std::map<std::byte*, Memory>::const_iterator place_of(const void* at) const;
  /// True if the bytes lie in one allocation (or in none, which means the host's pageable memory).
  bool is_within(const void* at, std::size_t bytes, int& device, bool& is_known) const;

 private:
  bool step_graph(GraphRun& run);
  /// True if nothing in the stream's hardware queue stands before its next work.
  bool may_begin(const CUstream_st& stream) const;

  bool has_progress_ = false;
  std::uint64_t enqueued_ = 0;
};

/// Returns the thread's current device.
int& current_device();

/// The beginning of every call: it takes the lock, lets the device make some progress, and finds an error that stays.
class Call {
 public:
  enum class Kind { kOfStream, kUnsafe, kQuery };
  explicit Call(const char* function, Kind kind = Kind::kOfStream);

  State* operator->() const { return &state_; }
  State& state() const { return state_; }
  std::unique_lock<std::mutex>& lock() { return lock_; }
  const char* function() const { return function_; }
  /// Returns the error that the call must return without doing anything, if there is one.
  cudaError_t error() const { return error_; }
  cudaError_t fault(cudaError_t error, const std::string& what) const {
    state_.fault(function_, what);
    return error;
  }
  /// Puts work on the stream, or into its capture. Waits while the stream's queue is full.
  cudaError_t enqueue(cudaStream_t stream, Work work);

 private:
  const char* function_;
  State& state_;
  std::unique_lock<std::mutex> lock_;
  cudaError_t error_ = cudaSuccess;
};

/// Refuses a Call of a function that takes memory or makes something, if the options ask for it.
cudaError_t refused(const Call& call);

}  // namespace plumb::test::played
