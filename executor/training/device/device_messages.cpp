#include "executor/training/device/device_messages.h"

#include <algorithm>

namespace plumb { inline namespace executor {

DeviceMessages::DeviceMessages(const TrainingPlan& training, const DeviceWorld& world, const DeviceStages& stages)
    : training_(training), world_(world), stages_(stages) {}

DeviceMessage DeviceMessages::message_of(const PlacedAction& send) const {
  const bool forward = send.action.op == Op::kSendActivation;
  const StageNeighbors& neighbors = training_.replay.neighbors;
  const int stage =
      (forward ? neighbors.successor : neighbors.predecessor)[static_cast<std::size_t>(send.action.stage)];
  return {.kind = forward ? MessageKind::kActivation : MessageKind::kGradient,
          .from = send.rank,
          .to = training_.replay.schedule.stages[static_cast<std::size_t>(stage)].rank,
          .words = incoming_words(stage, send.action.part, forward)};
}

/// Returns the words of 4 bytes that reach each rank of a stage.
std::int64_t DeviceMessages::incoming_words(int stage, int slice, bool forward) const {
  const StageSlices& own = stages_.at(0, static_cast<std::size_t>(stage)).slices();
  return ((forward ? own.input_bytes(slice) : own.output_bytes(slice)) + 3) / 4;
}

MeshTensor DeviceMessages::mesh_tensor(int pipeline) const {
  const RankGrid& grid = training_.replay.grid;
  const int tensor = mesh_of(grid, pipeline).tensor;
  return {.parts = std::max(1, parts_of_microbatch(grid, pipeline)),
          .tensor = tensor,
          .scattered = training_.replay.policy.sequence_parallel && tensor > 1};
}

std::vector<MessagePiece> DeviceMessages::pieces(const DeviceMessage& message) const {
  const RankGrid& grid = training_.replay.grid;
  const MeshTensor from = mesh_tensor(message.from), to = mesh_tensor(message.to);
  const int pipelines = mesh_of(grid, message.from).data / from.parts;
  std::vector<MessagePiece> pieces;
  if (world_.are_alike(message.from, message.to)) {
    const auto first_rank = [&](int pipeline) { return world_rank_of(grid, {.pipeline = pipeline}); };
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

std::optional<DeviceExchange> DeviceMessages::completion(const PlacedAction& taker, const CommunicatorSeat& seat,
                                                         std::byte* incoming) const {
  const bool forward = taker.action.op == Op::kForward;
  if (!forward && !gives_input_gradient(taker.action.op)) return {};
  const StageNeighbors& neighbors = training_.replay.neighbors;
  const int from =
      (forward ? neighbors.predecessor : neighbors.successor)[static_cast<std::size_t>(taker.action.stage)];
  if (from < 0) return {};
  const int sender = training_.replay.schedule.stages[static_cast<std::size_t>(from)].rank;
  const MeshTensor own = mesh_tensor(taker.rank);
  const Resharding kind = training_.replay.policy.resharding;
  if (world_.are_alike(sender, taker.rank) || own.tensor == 1 || own.scattered || kind == Resharding::kDirect)
    return {};
  const std::int64_t words = incoming_words(taker.action.stage, taker.action.part, forward);
  DeviceExchange exchange{.kind = CollectiveKind::kBroadcast,
                          .communicator = seat.number,
                          .member = seat.member,
                          .peer = 0,
                          .values = incoming,
                          .elements = words};
  if (kind == Resharding::kAllGather) {
    exchange.kind = CollectiveKind::kAllGather;
    exchange.peer = CommunicatorSeat::kNone;
    exchange.bounds = gathered_bounds(own, words);
  }
  return exchange;
}

}}  // namespace plumb::executor
