#pragma once
// A device as a replay sees it: memory, streams that run kernels in order, and the times at which calls began and
// ended. A GPU is one (executor/machines/cuda); in tests the host is.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/groups/device_exchange.h"
#include "executor/kernels/device_kernels.h"
#include "executor/program/device/device_program.h"
#include "executor/transport/transport.h"
#include "kernels/half_format.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// Times of a call from the beginning of the first call of its replay.
struct CallTimes {
  SimTime start{0};
  SimTime end{0};
};

class DeviceMachine {
 public:
  virtual ~DeviceMachine() = default;

  /// Bytes that can be allocated now.
  virtual std::int64_t free_bytes() const = 0;

  /// Bytes that prepare() and the first replay take for so many ranks besides.
  virtual std::int64_t own_bytes(int) const { return 0; }

  /// Returns memory of zeros, which stays until the machine goes. Throws RunError if there is not as much.
  virtual std::byte* allocate(std::int64_t bytes) = 0;

  /// Returns memory of the host that streams can copy from and to while kernels run, until the machine goes.
  virtual std::byte* allocate_on_host(std::int64_t bytes) = 0;

  /// Copy from and to the host. Both wait for the device.
  virtual void upload(void* to, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, const void* from) = 0;

  /// Makes the streams of the ranks, which are numbered from 0 on, and room for the events of that many calls, before
  /// the first replay. A replay may have fewer calls. lanes: the streams that calls go on, in ascending order.
  virtual void prepare(std::span<const DeviceLane> lanes, std::size_t calls) = 0;

  // A replay: begin_call, wait_for as often as it takes, kernels for each piece of work, end_call.

  /// True if the machine has kept the last replay's calls (as a graph) and does the same again at finish(): then none
  /// are to be made.
  virtual bool keeps_replay() const { return false; }

  /// Begins a call, whose kernels go on that stream. index: its number in the program. name: its text in profilers.
  virtual void begin_call(std::size_t index, int rank, DeviceStream stream, const char* name) = 0;
  /// Makes the call wait for the end of an earlier one.
  virtual void wait_for(std::size_t earlier) = 0;
  /// Returns the kernels of the call's stream, to enqueue a few. It waits where the host is far ahead of the device, and
  /// throws RunError, with the place, if the device or another rank has failed meanwhile.
  virtual DeviceKernels& kernels() = 0;
  virtual void end_call() = 0;

  /// Returns the text of a fault while the call's kernels were enqueued, with the place that the machine knows.
  virtual std::string text_of_fault(const std::string& reason) const { return reason; }

  // A machine can be one rank of several that are a machine each (a GPU with NCCL between them). Then prepare() is told
  // of rank 0 alone, all calls are of rank 0, and ranks meet through exchange(). Ranks that share a machine do not need it:
  // they read and write each other's memory by kernels, behind each other's calls.

  /// Makes the communicators in which the rank is a member, in ascending order, before the first replay and after
  /// prepare(). Waits for the other ranks. Throws RunError if they do not come.
  virtual void join(const DeviceGroups&) { throw RunError("this machine cannot meet ranks on other devices"); }

  /// Enqueues this rank's part on the stream of the call that has begun (or on one of the communicator's own, behind
  /// that stream and before what the stream does next). All ranks enqueue their exchanges in one order. It never
  /// shares a call with kernels: a call is either.
  virtual void exchange(const DeviceExchange&) { throw RunError("this machine cannot meet ranks on other devices"); }

  /// Launch the exchanges of the calls between them at once, as one group. None of these calls waits for another, and
  /// none has kernels.
  virtual void begin_group() { throw RunError("this machine cannot meet ranks on other devices"); }
  virtual void end_group() { throw RunError("this machine cannot meet ranks on other devices"); }

  /// Waits until the replay is over. Returns [call] times.
  virtual std::vector<CallTimes> finish() = 0;
};

}}  // namespace plumb::executor
