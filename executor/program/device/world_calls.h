#pragma once
// The calls of a pipeline's program (device_program.h) on the ranks of the world: every replica, tensor and context
// rank makes those of its pipeline rank, in an arena of its own. A call is cut into pieces where it exchanges something
// with the ranks of a group, and where a gradient bucket is complete.
//
// A piece may be on another stream than its call. The call's first piece on such a stream waits for all that the call's
// stream has when the piece is enqueued; pieces that name it in `behind` wait for it. The call is over when all of its
// pieces are; the next call on its stream waits only for the pieces on this stream.
//
// Ranks that share a device meet by events alone. An exchange is then a call of each member, and each waits for all
// that any member waits for and does its share of the work; a call that waits for one member waits for all. A rank on a
// device of its own has only its own calls: its exchanges wait for the other ranks by themselves (NCCL), and a RECV is
// a call of the receiver. In both cases all hosts enqueue in the same order.

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/program/device/device_program.h"

namespace plumb { inline namespace executor {

struct WorldPiece {
  std::int32_t communicator = -1;           ///< communicator of the exchange; -1: kernels only
  int bucket = -1;                          ///< gradient bucket that is complete behind it; -1: none
  std::optional<DeviceStream> stream = {};  ///< stream, if it is not the call's
  std::vector<std::int32_t> behind = {};    ///< earlier pieces of the call, on other streams, that it waits for
};

/// A call of the pipeline's program on one rank.
struct CallTrack {
  int rank = 0;  ///< rank in the world
  int lane = 0;  ///< number among the ranks with this pipeline rank; messages stay in a lane
  DeviceStream stream = DeviceStream::kCompute;
  std::vector<WorldPiece> pieces;  ///< at least one; every rank of a call has equally many

  DeviceStream stream_of(std::size_t piece) const { return pieces[piece].stream.value_or(stream); }
};

struct WorldCall {
  std::int32_t call = 0;   ///< index in the pipeline's program
  std::int32_t track = 0;  ///< track of the call
  std::int32_t piece = 0;
  std::vector<std::int32_t> waits;  ///< earlier world calls, without those that another wait, or the stream, implies
};

struct WorldProgram {
  std::vector<std::vector<CallTrack>> tracks;  ///< [call] in ascending order of ranks
  std::vector<WorldCall> calls;                ///< in the order in which the host enqueues them
  int ranks = 1;
};

/// Returns the streams that have calls, in ascending order.
std::vector<DeviceLane> lanes_of(const WorldProgram& world);

/// Expands the program. `pipeline` has all of its waits (DeviceWaits::kAll). `ranks`: size of the world.
WorldProgram world_calls(const DeviceProgram& pipeline, std::vector<std::vector<CallTrack>> tracks, int ranks);

}}  // namespace plumb::executor
