#pragma once
// An action is the atom of the IR: one thing that one pipeline rank does, without a time.
//
//   parse_action("3F7")              -> forward of stage 3, micro-batch 7
//   to_text(parse_action("2SEND_F0")) -> "2SEND_F0"
//
// Token: <stage><OP>[<micro-batch>][/<part>]. Operations that work on a whole stage (UNSHARD, RESHARD, REDUCE_GRAD,
// OPTIMIZER_STEP) carry no micro-batch. Messages of weights and of their gradients name the copy of the stage at the
// other end in its place: 3SEND_WEIGHTS7 goes from stage 3 to stage 7, which lists 7RECV_WEIGHTS3. `part` is printed
// only where it is not 0.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumb { inline namespace schedules {

enum class Op : std::uint8_t {
  kForward,         ///< F: activations of a stage for one micro-batch
  kBackward,        ///< B: input gradient and weight gradient in one
  kInputGrad,       ///< I: gradient with respect to the stage's input (dgrad)
  kWeightGrad,      ///< W: gradient with respect to the stage's weights (wgrad)
  kRecompute,       ///< R: runs the forward again, to rebuild the activations that F did not keep
  kSendActivation,  ///< SEND_F: stage is the producer
  kRecvActivation,  ///< RECV_F: stage is the consumer
  kSendGradient,    ///< SEND_B: stage is the producer (the later stage)
  kRecvGradient,    ///< RECV_B: stage is the consumer (the earlier stage)
  kUnshard,         ///< gathers the stage's parameters from their shards
  kReshard,         ///< drops the gathered parameters
  kReduceGrad,      ///< reduces the stage's weight gradients over its replicas
  kOptimizerStep,   ///< updates the stage's weights to their next version
  kSendWeights,     ///< SEND_WEIGHTS: hands the stage's weights on to the stage `peer`, a copy of it
  kRecvWeights,     ///< RECV_WEIGHTS: takes the weights that `peer` hands on
  kSendWeightGrad,  ///< SEND_WGRAD: hands the sum of the stage's weight gradients on to the stage `peer`
  kRecvWeightGrad,  ///< RECV_WGRAD: takes that sum and adds it to the stage's own
  kOffload,         ///< moves a micro-batch's activations to host memory
  kReload,          ///< brings them back
  kEvict,           ///< moves a micro-batch's activations to the partner rank (BPipe)
  kLoad,            ///< brings them back
};
inline constexpr int kOpCount = 21;

/// The micro-batch of an operation that has none.
inline constexpr std::int32_t kNoMicrobatch = -1;

/// The other end of an operation that has none.
inline constexpr std::int32_t kNoPeer = -1;

struct Action {
  Op op = Op::kForward;
  bool overlaps_next = false;  ///< true if it forms an overlapped pair with the next action of the list (DualPipe)
  std::int16_t part = 0;       ///< sequence slice, or bucket / layer group; 0 where there is only one
  std::int32_t stage = 0;
  std::int32_t microbatch = kNoMicrobatch;
  std::int32_t peer = kNoPeer;  ///< the stage at the other end of a message of weights or of their gradients

  friend bool operator==(const Action&, const Action&) = default;
};

/// Returns the operation's name: "F", "SEND_F", "OPTIMIZER_STEP", ...
std::string_view op_name(Op op);

/// Returns the operation of that name (case matters), or nothing.
std::optional<Op> op_from_name(std::string_view name);

/// True for the operations that occupy their rank to their end: F, B, I, W, R and OPTIMIZER_STEP.
constexpr bool is_compute(Op op) {
  return op <= Op::kRecompute || op == Op::kOptimizerStep;
}

/// B and I make the gradient of a stage's input; B and W make that of its weights.
constexpr bool gives_input_gradient(Op op) {
  return op == Op::kBackward || op == Op::kInputGrad;
}
constexpr bool gives_weight_gradient(Op op) {
  return op == Op::kBackward || op == Op::kWeightGrad;
}

/// True for the messages from stage to stage: SEND_F, RECV_F, SEND_B and RECV_B.
constexpr bool is_message(Op op) {
  return op >= Op::kSendActivation && op <= Op::kRecvGradient;
}
constexpr bool is_send(Op op) {
  return op == Op::kSendActivation || op == Op::kSendGradient;
}
constexpr bool is_recv(Op op) {
  return op == Op::kRecvActivation || op == Op::kRecvGradient;
}

/// True for the messages between copies of a stage: SEND_WEIGHTS, RECV_WEIGHTS, SEND_WGRAD and RECV_WGRAD.
constexpr bool is_weight_message(Op op) {
  return op >= Op::kSendWeights && op <= Op::kRecvWeightGrad;
}
constexpr bool sends_weights(Op op) {
  return op == Op::kSendWeights || op == Op::kSendWeightGrad;
}
constexpr bool receives_weights(Op op) {
  return op == Op::kRecvWeights || op == Op::kRecvWeightGrad;
}

/// True for UNSHARD and REDUCE_GRAD, which occupy a channel of their group beside the compute.
constexpr bool is_collective(Op op) {
  return op == Op::kUnshard || op == Op::kReduceGrad;
}

/// OFFLOAD and EVICT take the activations of a micro-batch (slice) away; RELOAD and LOAD bring them back.
constexpr bool takes_away(Op op) {
  return op == Op::kOffload || op == Op::kEvict;
}
constexpr bool brings_back(Op op) {
  return op == Op::kReload || op == Op::kLoad;
}

/// True where the operation belongs to one micro-batch.
constexpr bool has_microbatch(Op op) {
  return op <= Op::kRecvGradient || op >= Op::kOffload;
}

/// Returns the token of an action, e.g. "0F3", "1REDUCE_GRAD/2".
std::string to_text(const Action& action);

/// Returns the action that a token says, or nothing unless the whole token is exactly one action.
std::optional<Action> parse_action(std::string_view token);

}}  // namespace plumb::schedules
