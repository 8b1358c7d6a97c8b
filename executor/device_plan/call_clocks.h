#pragma once
// Which calls have ended, whatever the timing, when a call starts: those of its stream ahead of it, those it waits for,
// and all that these stand behind. Vector clocks (Mattern 1989), a component a stream.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/device_plan/device_program.h"

namespace plumb { inline namespace executor {

class CallClocks {
 public:
  explicit CallClocks(int ranks) : streams_(static_cast<std::size_t>(ranks) * kDeviceStreamCount) {}

  /// Adds the next call of the list, with its waits; they name calls that have been added.
  void add(const DeviceCall& call);

  /// The same in two steps: the call, which has no waits yet, and a wait of it.
  void begin(int rank, DeviceStream stream);
  void wait(const DeviceWait& wait);

  /// True if call `earlier` has ended before the newest call starts. It is none of its own.
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
  std::vector<std::int32_t> place_;     // [call] 1, 2, ... in its stream
  std::vector<std::int32_t> ended_;     // [call][stream] how many of the stream have ended before the call starts
  std::vector<std::int32_t> last_ = std::vector<std::int32_t>(streams_, -1);  // [stream] its newest call
};

}}  // namespace plumb::executor
