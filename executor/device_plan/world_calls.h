#pragma once
// The calls of a pipeline's program (device_program.h) on the ranks of the world: every replica, tensor and context
// rank does those of its pipeline rank in an arena of its own. A call falls into pieces where it exchanges something
// with the ranks of a group, and where a gradient bucket is complete.
//
// A piece may be on another stream than its call: then it stands behind what the call's stream has when it is enqueued
// if it is the call's first there, and behind it stands what names it. The call is over when all of its pieces are; the
// next one on its stream waits for those on this stream alone.
//
// Ranks that share a device meet by events alone: an exchange is a call of each member behind all that any of them
// stands behind, each does its share of the work, and who stands behind one of them stands behind all. A rank on a
// device of its own has only its own calls; what it exchanges waits for the others by itself (NCCL), and a RECV is a
// call of the receiver. Either way all hosts enqueue in one order.

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/device_plan/device_program.h"

namespace plumb { inline namespace executor {

struct WorldPiece {
  std::int32_t communicator = -1;           ///< of what is exchanged; -1: kernels
  int bucket = -1;                          ///< gradient bucket that is complete behind it; -1: none
  std::optional<DeviceStream> stream = {};  ///< another one than the call's
  std::vector<std::int32_t> behind = {};    ///< earlier pieces of the call that it waits for, on other streams
};

/// A call of the pipeline's program on one rank.
struct CallTrack {
  int rank = 0;  ///< of the world
  int lane = 0;  ///< which of the ranks with the pipeline rank's place it is: messages stay in a lane
  DeviceStream stream = DeviceStream::kCompute;
  std::vector<WorldPiece> pieces;  ///< at least one; as many on every rank of a call

  DeviceStream stream_of(std::size_t piece) const { return pieces[piece].stream.value_or(stream); }
};

struct WorldCall {
  std::int32_t call = 0;   ///< of the pipeline's program
  std::int32_t track = 0;  ///< of the call
  std::int32_t piece = 0;
  std::vector<std::int32_t> waits;  ///< earlier world calls, none that another one, or the stream, implies
};

struct WorldProgram {
  std::vector<std::vector<CallTrack>> tracks;  ///< [call] in ascending order of ranks
  std::vector<WorldCall> calls;                ///< in the order in which the host enqueues them
  int ranks = 1;
};

/// `pipeline` has all of its waits (DeviceWaits::kAll). `ranks`: in the world.
WorldProgram world_calls(const DeviceProgram& pipeline, std::vector<std::vector<CallTrack>> tracks, int ranks);

}}  // namespace plumb::executor
