#pragma once
// CUDA played on the host: the functions of CUDA's runtime and driver, cuBLASLt and NVTX that executor/machines/cuda calls.
// Enqueued work is done later, in a random one of the orders that streams and events allow. Work that CUDA's
// documentation forbids or leaves undefined is noted with the function's name, and so is what has not been freed at the
// end.
//
// It also plays what makes programs hang on hardware, and notes where a host has waited for `patience`: a launch waits
// while its stream's queue is full; streams share the hardware queues, in which nothing begins before all that was
// enqueued before it; kernels of NCCL hold SMs until their peers come; cudaFree() and ncclCommAbort() wait for all of the
// device's work; a launch of NCCL is settled when all members have called; the first launch of a kernel loads its code.

#include <cuda_runtime.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plumb::test::played {

struct Options {
  int devices = 1;
  std::vector<int> visible;  ///< [device] its number on the machine; empty: their own numbers
  int multiprocessors = 132;
  int major = 9;
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  /// Seed of the order; it also sets how far the device runs ahead of the host's waits.
  unsigned seed = 1;
  std::chrono::milliseconds patience{20'000};
  std::size_t launch_queue = 1024;  ///< pieces of work that a stream holds before the next launch waits
  /// Hardware queues of a device, which streams get by turns as they are made. CUDA's own number is 8, and
  /// CUDA_DEVICE_MAX_CONNECTIONS sets it.
  int connections = 8;
  int nccl_sms = 24;  ///< SMs that a kernel of NCCL holds on a communicator that does not limit them (maxCTAs)
  /// The first launch of a kernel waits for the device, as the loading of its code may ("CUDA C++ Programming Guide, Lazy
  /// Loading"), unless CUDA_MODULE_LOADING is EAGER.
  bool loads_late = false;
  std::int64_t code_bytes = 0;       ///< memory that the code of each kernel takes at its first launch
  bool refuses_epilogues = false;    ///< cuBLASLt has no algorithm for products with an epilogue
  bool knows_green_contexts = true;  ///< the driver has their functions
  bool gives_green_contexts = true;
  bool has_driver = true;
  bool has_old_driver = false;  ///< it is older than the runtime: every call says so
  /// Number of the kernel, from 0 on, that reads an illegal address while it runs.
  std::optional<std::int64_t> faulty_kernel;
  int faulty_device = -1;  ///< device of the next three options
  /// Number of the NCCL call, from 0 on, that reports an error while it runs.
  std::optional<int> nccl_fails_at;
  std::optional<int> nccl_stalls_at;  ///< number of the NCCL call that never begins
  /// Number of the NCCL call with which the process gets a signal: killed, or stopped.
  std::optional<int> nccl_signal_at;
  int signal = 9;
  /// Number of the call that fails, among those that take memory or make something.
  std::optional<std::int64_t> refused_call;
};

/// Counts of what was done since restart().
struct Counts {
  std::int64_t kernels = 0;  ///< launches, including products, captured or not
  std::int64_t products = 0;
  std::int64_t graph_launches = 0;
  std::int64_t allocations = 0;
  std::int64_t synchronizations = 0;  ///< calls in which the host waits for the device
  std::int64_t most_bytes = 0;        ///< the most memory in use on one device
  std::int64_t made = 0;              ///< calls that refused_call counts
  std::int64_t streams = 0;           ///< streams that were made
  std::int64_t urgent_streams = 0;    ///< those among them that go before others
  std::int64_t loaded_kernels = 0;    ///< kernels, by device, whose code was loaded
  std::int64_t full_queues = 0;       ///< launches that waited for room in their stream's queue
};

/// Starts as a process that has not called CUDA yet.
void restart(const Options& options);

/// Returns what was forbidden, and what has not been destroyed or freed.
std::vector<std::string> faults();

Counts counts();

/// Returns [range] the names of NVTX's ranges in the order in which they were pushed.
std::vector<std::string> ranges();

/// Enqueues a kernel, or has it captured. Returns what a launch returns.
cudaError_t launch(cudaStream_t stream, const char* name, std::function<void()> kernel);

/// Returns the SMs of the green context whose stream it is, or all SMs for other streams.
int multiprocessors_of(cudaStream_t stream);

}  // namespace plumb::test::played
