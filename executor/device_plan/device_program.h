#pragma once
// What a device does in one replay of a schedule, as a value made before the first step: the calls that the host
// enqueues, in order, each on a stream of its rank and behind the calls of other streams that it waits for; and where
// in the rank's arena every temporary tensor lies. Nothing is left to decide, allocate or wait for on the host.
//
// A stream runs its calls in the order of the list. A wait is an event recorded behind the call that is waited for; it
// stands earlier in the list, as a wait for an event that is not recorded yet would be none.

#include <cstdint>
#include <vector>

namespace plumb { inline namespace executor {

/// A rank's streams, one of each.
enum class DeviceStream : std::uint8_t {
  kCompute,         ///< F, B, I, W, R, OPTIMIZER_STEP
  kSendActivation,  ///< SEND_F: copies into the receiver's arena
  kSendGradient,    ///< SEND_B
  kReduce,          ///< REDUCE_GRAD, UNSHARD
  kCopy,            ///< OFFLOAD, RELOAD, EVICT, LOAD
  // Of a rank on a device of its own (world_calls.h): otherwise a message is the sender's call.
  kReceiveActivation,  ///< RECV_F
  kReceiveGradient,    ///< RECV_B
};
inline constexpr int kDeviceStreamCount = 7;

struct DeviceWait {
  static constexpr int kEnd = -1;

  std::int32_t call = 0;  ///< index in DeviceProgram::calls
  int bucket = kEnd;      ///< kEnd: all of it; otherwise the moment inside when this gradient bucket is complete

  friend bool operator==(const DeviceWait&, const DeviceWait&) = default;
};

/// The work of one action, of an overlapped pair (that of both), or of a sum over copies of a stage (that of all).
struct DeviceCall {
  std::int32_t action = 0;  ///< id (schedules/dependencies/dependencies.h); of the first, where there are several
  int rank = 0;
  DeviceStream stream = DeviceStream::kCompute;
  std::vector<DeviceWait> waits;  ///< none that another one, or the stream, implies
  bool with_next = false;         ///< a message that is launched as one group with that of the next call, which then
                                  ///< stands behind the same calls (executor/nccl/message_pairs.h)
};

enum class BufferUse : std::uint8_t {
  kActivations,  ///< what F keeps, to the last part of the backward (or until it is moved away, and from when it is
                 ///< back)
  kRebuilt,      ///< what recomputation brings back, to that end
  kWorkspace,    ///< while one call runs
  kMessage,      ///< a message at its receiver: from the copy's start to the end of the consumer
  kHandOver,     ///< a stage's output or input gradient, from its making until it has left or is consumed
  kGathered,     ///< whole weights, UNSHARD to RESHARD
  kGradients,    ///< gradients of all elements where they are sharded, from the first to REDUCE_GRAD
  kGuest,        ///< activations of the partner rank (EVICT to LOAD)
  kHost,         ///< activations in the host's memory (OFFLOAD to RELOAD)
  kWeights,      ///< a version of the weights that an OPTIMIZER_STEP has replaced, to its last user
  kSequences,    ///< what the slices of a micro-batch keep of its whole sequences, from the first F to the last I
  kSequenceGradients,  ///< what they owe to it, from the first I to the last
};

/// What a stage needs in the arena beyond the cost table's bytes.
struct DeviceStageBytes {
  std::int64_t whole_gradients = 0;     ///< gradients that are sharded, before their reduction; 0: they are not
  std::int64_t update_workspace = 0;    ///< while an OPTIMIZER_STEP runs
  std::int64_t sequences = 0;           ///< of a micro-batch's whole sequences, where it runs in slices
  std::int64_t sequence_gradients = 0;  ///< likewise
};

/// A tensor, or several that live as long, in an arena.
struct DeviceBuffer {
  int rank = 0;  ///< whose arena; of kHost, whose part of the host's memory
  BufferUse use = BufferUse::kActivations;
  bool freed_by_input_grad = false;  ///< kActivations, kRebuilt: the part that W does not need
  std::int32_t maker = -1;           ///< action (id) that it is there for: F, RELOAD or LOAD, OFFLOAD or EVICT (of what
      ///< is away), R (or I, B), the RECV of a message, the producer of what is handed over,
      ///< whose workspace it is, the OPTIMIZER_STEP that replaces the weights
  std::int32_t taker = -1;  ///< kMessage, kHandOver: the action that reads it
  std::int64_t bytes = 0;
  std::int64_t offset = 0;
  std::vector<std::int32_t> calls;  ///< that touch it, ascending; the first writes it
};

struct DeviceProgram {
  std::vector<DeviceCall> calls;  ///< in the order in which the host enqueues them
  std::vector<DeviceBuffer> buffers;
  std::vector<std::int64_t> arena_bytes;  ///< [rank]
  std::vector<std::int64_t> host_bytes;   ///< [rank] of the host's memory, for kHost
  std::vector<std::int64_t> live_bytes;   ///< [rank] the most that its buffers hold at once: no arena is smaller
};

/// Calls that another call waits for: so many events are recorded.
std::int64_t event_count(const DeviceProgram& program);

}}  // namespace plumb::executor
