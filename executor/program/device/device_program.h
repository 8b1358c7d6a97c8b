#pragma once
// The work of a device in one replay of a schedule, as a value that is made before the first step. It lists the calls
// that the host enqueues, in order, each with its stream and with the calls of other streams that it waits for, and it
// gives every temporary tensor its place in the rank's arena. The host has nothing left to decide, allocate or wait
// for.
//
// A stream runs its calls in the order of the list. A wait is an event that is recorded behind the call that is waited
// for. That call stands earlier in the list, since a wait for an event that is not recorded yet would not wait.

#include <compare>
#include <cstdint>
#include <vector>

namespace plumb { inline namespace executor {

/// The streams of a rank, one of each kind.
enum class DeviceStream : std::uint8_t {
  kCompute,         ///< F, B, I, W, R, OPTIMIZER_STEP
  kSendActivation,  ///< SEND_F: copies into the receiver's arena
  kSendGradient,    ///< SEND_B
  kReduce,          ///< REDUCE_GRAD, UNSHARD
  kCopy,            ///< OFFLOAD, RELOAD, EVICT, LOAD
  kExchange,        ///< exchanges of one action of an overlapped pair beside the other's kernels
  // Streams of a rank on a device of its own (world_calls.h). Elsewhere a message is only the sender's call.
  kReceiveActivation,  ///< RECV_F
  kReceiveGradient,    ///< RECV_B
};
inline constexpr int kDeviceStreamCount = 8;

/// A stream of a rank.
struct DeviceLane {
  int rank = 0;
  DeviceStream stream = DeviceStream::kCompute;

  auto operator<=>(const DeviceLane&) const = default;
};

struct DeviceWait {
  static constexpr int kEnd = -1;

  std::int32_t call = 0;  ///< index in DeviceProgram::calls
  /// kEnd: the whole call; otherwise the moment inside it at which this gradient bucket is complete.
  int bucket = kEnd;

  friend bool operator==(const DeviceWait&, const DeviceWait&) = default;
};

/// The work of one action, of both actions of an overlapped pair, or of a sum over all copies of a stage.
struct DeviceCall {
  /// Id (schedules/dependencies/dependencies.h), that of the first action if there are several.
  std::int32_t action = 0;
  int rank = 0;
  DeviceStream stream = DeviceStream::kCompute;
  std::vector<DeviceWait> waits;  ///< without those that another wait, or the stream, implies
  /// A message that is launched as one group with that of the next call, which waits for the same calls
  /// (executor/groups/message_pairs.h).
  bool with_next = false;
};

enum class BufferUse : std::uint8_t {
  /// Activations that F keeps until the last part of the backward, or until they are moved away, and from when they are
  /// back.
  kActivations,
  kRebuilt,            ///< activations that recomputation makes again, to the same end
  kWorkspace,          ///< memory for the duration of one call
  kMessage,            ///< a message at its receiver, from the start of its copy to the end of its consumer
  kHandOver,           ///< a stage's output or input gradient, until it has left or is consumed
  kGathered,           ///< whole weights, UNSHARD to RESHARD
  kGradients,          ///< gradients of all elements where they are sharded, from the first to REDUCE_GRAD
  kGuest,              ///< activations of the partner rank (EVICT to LOAD)
  kHost,               ///< activations in the host's memory (OFFLOAD to RELOAD)
  kWeights,            ///< a version of the weights that an OPTIMIZER_STEP has replaced, to its last use
  kSequences,          ///< keys and values of whole sequences, which slices share, from the first F to the last I
  kSequenceGradients,  ///< their gradients, from the first I to the last
};

/// Bytes of a stage in the arena beyond the cost table's.
struct DeviceStageBytes {
  std::int64_t whole_gradients = 0;     ///< gradients that are sharded, before their reduction; 0: not sharded
  std::int64_t update_workspace = 0;    ///< while an OPTIMIZER_STEP runs
  std::int64_t sequences = 0;           ///< keys and values of a micro-batch's whole sequences, where it runs in slices
  std::int64_t sequence_gradients = 0;  ///< their gradients
};

/// A tensor, or several with the same lifetime, in an arena.
struct DeviceBuffer {
  int rank = 0;  ///< rank whose arena holds it; kHost: whose part of the host's memory
  BufferUse use = BufferUse::kActivations;
  bool freed_by_input_grad = false;  ///< kActivations, kRebuilt: the part that W does not need
  /// Id of the action that makes it: F, RELOAD or LOAD; OFFLOAD or EVICT (for activations that are away); R (or I, B);
  /// the RECV of a message; the producer of a hand-over; the action with the workspace; the OPTIMIZER_STEP that
  /// replaces the weights.
  std::int32_t maker = -1;
  std::int32_t taker = -1;  ///< kMessage, kHandOver: the action that reads it
  std::int64_t bytes = 0;
  std::int64_t offset = 0;
  std::vector<std::int32_t> calls;  ///< the calls that use it, ascending; the first writes it
};

struct DeviceProgram {
  std::vector<DeviceCall> calls;  ///< in the order in which the host enqueues them
  std::vector<DeviceBuffer> buffers;
  std::vector<std::int64_t> arena_bytes;  ///< [rank]
  std::vector<std::int64_t> host_bytes;   ///< [rank] bytes of the host's memory, for kHost
  std::vector<std::int64_t> live_bytes;   ///< [rank] the most that its buffers hold at once; no arena can be smaller
};

/// Returns the number of events that are recorded: the calls, or moments inside them, that another call waits for.
std::int64_t event_count(const DeviceProgram& program);

}}  // namespace plumb::executor
