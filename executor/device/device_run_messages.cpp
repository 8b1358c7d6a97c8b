// Messages between stages as a run records them: a copy of the sender's into the receiver's arena, or its end that is
// here. Between meshes of different shape it falls into pieces (executor/division/resharding_pieces.h), and the
// receiver's tensor ranks give each other what they were not sent.

#include <algorithm>

#include "executor/device/device_run.h"

namespace plumb { inline namespace executor {

DeviceRun::Message DeviceRun::message_of(const PlacedAction& send) const {
  const bool forward = send.action.op == Op::kSendActivation;
  const StageNeighbors& neighbors = training_.replay.neighbors;
  const int stage =
      (forward ? neighbors.successor : neighbors.predecessor)[static_cast<std::size_t>(send.action.stage)];
  return {.kind = forward ? MessageKind::kActivation : MessageKind::kGradient,
          .from = send.rank,
          .to = schedule_.stages[static_cast<std::size_t>(stage)].rank,
          .words = incoming_words(stage, send.action.part, forward)};
}

/// Of 4 bytes, that reach each rank of a stage.
std::int64_t DeviceRun::incoming_words(int stage, int slice, bool forward) const {
  const DeviceStage& own = lane_stages(0)[static_cast<std::size_t>(stage)];
  return ((forward ? own.input_bytes(slice) : own.output_bytes(slice)) + 3) / 4;
}

MeshTensor DeviceRun::mesh_tensor(int pipeline) const {
  const RankGrid& grid = training_.replay.grid;
  const int tensor = mesh_of(grid, pipeline).tensor;
  return {.parts = std::max(1, parts_of_microbatch(grid, pipeline)),
          .tensor = tensor,
          .scattered = training_.replay.policy.sequence_parallel && tensor > 1};
}

bool DeviceRun::are_like_meshes(int one, int other) const {
  return mesh_of(training_.replay.grid, one) == mesh_of(training_.replay.grid, other);
}

std::vector<DeviceRun::MessagePiece> DeviceRun::message_pieces(const Message& message) const {
  const RankGrid& grid = training_.replay.grid;
  const MeshTensor from = mesh_tensor(message.from), to = mesh_tensor(message.to);
  const int pipelines = mesh_of(grid, message.from).data / from.parts;
  std::vector<MessagePiece> pieces;
  if (are_like_meshes(message.from, message.to)) {
    const int size = std::max(1, mesh_of(grid, message.from).data * from.tensor * grid.grid.context);
    for (int number = 0; number < size; ++number)
      pieces.push_back({.source = first_rank(message.from) + number,
                        .destination = first_rank(message.to) + number,
                        .words = message.words});
    return pieces;
  }
  const std::int64_t whole = message.words * to.parts * (to.scattered ? to.tensor : 1);
  for (int number = 0; number < pipelines * grid.grid.context; ++number)
    for (const ReshardingPiece& piece : resharding_pieces(from, to, training_.replay.policy.resharding, whole)) {
      const int pipeline = number / grid.grid.context, context = number % grid.grid.context;
      pieces.push_back({.source = world_rank_of(grid, {.tensor = piece.from_tensor,
                                                       .context = context,
                                                       .data = pipeline * from.parts + piece.from_part,
                                                       .pipeline = message.from}),
                        .destination = world_rank_of(grid, {.tensor = piece.to_tensor,
                                                            .context = context,
                                                            .data = pipeline * to.parts + piece.to_part,
                                                            .pipeline = message.to}),
                        .from = piece.first - held_elements(from, piece.from_part, piece.from_tensor, whole).first,
                        .to = piece.first - held_elements(to, piece.to_part, piece.to_tensor, whole).first,
                        .words = piece.count});
    }
  return pieces;
}

int DeviceRun::first_rank(int pipeline) const {
  return world_rank_of(training_.replay.grid, {.pipeline = pipeline});
}

void DeviceRun::send_here(CallRecorder& kernels, const PlacedAction& send, int lane) const {
  const int own = world_.rank_of(send.rank, lane);
  kernels.open_piece();
  for (const MessagePiece& piece : message_pieces(message_of(send)))
    if (piece.source == own)
      kernels.copy(address(send.outgoing, world_.lane_of(piece.destination)) + 4 * piece.to,
                   address(send.incoming, lane) + 4 * piece.from, 4 * piece.words);
}

void DeviceRun::record_message(std::size_t index) {
  const PlacedAction& send = calls_[index].front();
  const Message message = message_of(send);
  const bool forward = message.kind == MessageKind::kActivation;
  CallRecorder sends, receives;
  int source = -1, destination = -1;
  for (const MessagePiece& piece : message_pieces(message)) {
    DeviceExchange exchange{.communicator = groups_.channel(message.kind, piece.source, piece.destination),
                            .elements = piece.words};  // all ranks have asked for it
    if (!world_.is_here(piece.source) && !world_.is_here(piece.destination)) continue;
    if (world_.is_here(piece.source)) {
      source = piece.source;
      exchange.kind = NcclKind::kSend;
      exchange.peer = 1;
      exchange.values = address(send.incoming, 0) + 4 * piece.from;
      sends.exchange(exchange);
    } else {
      destination = piece.destination;
      exchange.kind = NcclKind::kReceive;
      exchange.member = 1;
      exchange.peer = 0;
      exchange.values = address(send.outgoing, 0) + 4 * piece.to;
      receives.exchange(exchange);
    }
  }
  // Who is sent nothing, and gets it from its tensor group: what had the place is over with this call, too.
  if (const int there = world_.rank_of(message.to, 0); world_.is_here(there)) destination = there;
  const auto add = [&](int rank, DeviceStream stream, CallRecorder& recorder) {
    if (rank >= 0)
      recorded_->add(index, {.rank = rank, .lane = world_.track_lane(rank), .stream = stream, .pieces = {}},
                     recorder.take());
  };
  add(source, program_.calls[index].stream, sends);
  add(destination, forward ? DeviceStream::kReceiveActivation : DeviceStream::kReceiveGradient, receives);
}

void DeviceRun::complete_message(CallRecorder& recorder, const PlacedAction& taker, int lane) const {
  const bool forward = taker.action.op == Op::kForward;
  if (!forward && !gives_input_gradient(taker.action.op)) return;
  const StageNeighbors& neighbors = training_.replay.neighbors;
  const int from =
      (forward ? neighbors.predecessor : neighbors.successor)[static_cast<std::size_t>(taker.action.stage)];
  if (from < 0) return;
  const int sender = schedule_.stages[static_cast<std::size_t>(from)].rank;
  const MeshTensor own = mesh_tensor(taker.rank);
  const Resharding kind = training_.replay.policy.resharding;
  if (are_like_meshes(sender, taker.rank) || own.tensor == 1 || own.scattered || kind == Resharding::kDirect) return;
  const NcclSeat& seat = groups_.tensor(world_.rank_of(taker.rank, lane));
  const std::int64_t words = incoming_words(taker.action.stage, taker.action.part, forward);
  DeviceExchange exchange{.kind = NcclKind::kBroadcast,
                          .communicator = seat.number,
                          .member = seat.member,
                          .peer = 0,
                          .values = address(taker.incoming, lane),
                          .elements = words};
  if (kind == Resharding::kAllGather) {
    exchange.kind = NcclKind::kAllGather;
    exchange.peer = NcclCall::kNone;
    exchange.bounds = gathered_bounds(own, words);
  }
  recorder.exchange(exchange);
}

}}  // namespace plumb::executor
