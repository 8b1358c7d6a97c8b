#pragma once
// CUDA played on the host: the functions of CUDA's runtime and driver, cuBLASLt and NVTX that executor/cuda calls. What
// is enqueued is done later, in a random one of the orders that streams and events allow; what CUDA's documentation
// forbids or leaves undefined is noted with the function's name, and so is what is left over at the end.

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plumb::test::played {

struct Options {
  int devices = 1;
  std::vector<int> visible;  ///< [device] which of the machine's it is; empty: as they are numbered
  int multiprocessors = 132;
  int major = 9;
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  unsigned seed = 1;                 ///< of the order; also how far the device is ahead of the host's waits
  bool knows_green_contexts = true;  ///< the driver has their functions
  bool gives_green_contexts = true;
  bool has_driver = true;
  bool has_old_driver = false;                ///< older than the runtime: every call says so
  std::optional<std::int64_t> faulty_kernel;  ///< this one, from 0 on, reads an illegal address while it runs
  int faulty_device = -1;                     ///< of the three that follow
  std::optional<int> nccl_fails_at;           ///< this call of NCCL, from 0 on, reports an error while it runs
  std::optional<int> nccl_stalls_at;          ///< this one never begins
  std::optional<int> nccl_signal_at;          ///< with this one the process gets a signal: killed, or stopped
  int signal = 9;
  std::optional<std::int64_t> refused_call;  ///< this one of the functions that take memory or make something fails
};

/// What was done since restart().
struct Counts {
  std::int64_t kernels = 0;  ///< launched, products too, captured or not
  std::int64_t products = 0;
  std::int64_t graph_launches = 0;
  std::int64_t allocations = 0;
  std::int64_t synchronizations = 0;  ///< calls in which the host waits for the device
  std::int64_t most_bytes = 0;        ///< of one device's memory
  std::int64_t made = 0;              ///< calls that refused_call counts
};

/// A process that has not called CUDA yet.
void restart(const Options& options);

/// What was forbidden, and what has not been destroyed or freed.
std::vector<std::string> faults();

Counts counts();

/// [range] names of NVTX's ranges in the order in which they were pushed.
std::vector<std::string> ranges();

/// Enqueues a kernel, or has it captured. What a launch returns.
cudaError_t launch(cudaStream_t stream, const char* name, std::function<void()> kernel);

/// SMs of the green context whose stream it is; all for others.
int multiprocessors_of(cudaStream_t stream);

}  // namespace plumb::test::played
