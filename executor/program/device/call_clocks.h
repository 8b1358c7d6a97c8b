#pragma once
// The calls that have ended, whatever the timing, when a call starts: the earlier ones of its stream, those that it
// waits for, and all that these have waited for. It keeps vector clocks (Mattern 1989) with a component for each
// stream.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/program/device/device_program.h"

namespace plumb { inline namespace executor {

class CallClocks {
 public:
  explicit CallClocks(int ranks) : streams_(static_cast<std::size_t>(ranks) * kDeviceStreamCount) {}

  /// Adds the next call of the list, with its waits; these name calls that have been added before.
  void add(const DeviceCall& call);

  /// Do the same in two steps: begin() adds the call without waits, and wait() adds a wait to it.
  void begin(int rank, DeviceStream stream);
  void wait(const DeviceWait& wait);

  /// True if call `earlier` has ended before the newest call starts. A call does not precede itself.
  bool precedes_newest(std::int32_t earlier) const { return precedes(earlier, newest()); }

  /// True if call `earlier` has ended before call `later` starts.
  bool precedes(std::int32_t earlier, std::int32_t later) const;

 private:
  std::int32_t newest() const { return static_cast<std::int32_t>(stream_of_.size()) - 1; }
  std::int32_t* ended_before(std::int32_t call) { return &ended_[static_cast<std::size_t>(call) * streams_]; }
  const std::int32_t* ended_before(std::int32_t call) const {
    return &ended_[static_cast<std::size_t>(call) * streams_];
  }

  std::size_t streams_;
  std::vector<std::size_t> stream_of_;  // [call]
  std::vector<std::int32_t> place_;     // [call] its number in its stream: 1, 2, ...
  std::vector<std::int32_t> ended_;     // [call][stream] how many calls of the stream have ended before the call starts
  std::vector<std::int32_t> last_ = std::vector<std::int32_t>(streams_, -1);  // [stream] its newest call
};

}}  // namespace plumb::executor
