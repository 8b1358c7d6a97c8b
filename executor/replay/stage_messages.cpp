#include "executor/replay/stage_messages.h"

#include <algorithm>
#include <utility>

namespace plumb { inline namespace executor {

MeshTensor StageMessages::mesh_tensor(int pipeline_rank) const {
  const int tensor = mesh_of(plan_.grid, pipeline_rank).tensor;
  return {.parts = parts_of_microbatch(plan_.grid, pipeline_rank),
          .tensor = tensor,
          .scattered = plan_.policy.sequence_parallel && tensor > 1};
}

bool StageMessages::has_shape_of(int pipeline_rank) const {
  return mesh_of(plan_.grid, pipeline_rank) == mesh_of(plan_.grid, seat_.place.pipeline);
}

/// Returns this rank's number among the data ranks that divide a micro-batch.
int StageMessages::own_part() const {
  return seat_.place.data % parts_of_microbatch(plan_.grid, seat_.place.pipeline);
}

/// Returns the world rank on another pipeline rank of the same pipeline and context rank.
int StageMessages::rank_there(int pipeline_rank, int part, int tensor) const {
  const int pipeline = seat_.place.data / parts_of_microbatch(plan_.grid, seat_.place.pipeline);
  return world_rank_of(plan_.grid, {.tensor = tensor,
                                    .context = seat_.place.context,
                                    .data = pipeline * parts_of_microbatch(plan_.grid, pipeline_rank) + part,
                                    .pipeline = pipeline_rank});
}

std::vector<TicketPtr> StageMessages::send(int pipeline_rank, MessageKind kind, const MessageTag& tag,
                                           Tensor tensor) const {
  const int own = world_rank_of(plan_.grid, seat_.place);
  if (has_shape_of(pipeline_rank))
    return {seat_.transport->send({own, rank_there(pipeline_rank, own_part(), seat_.place.tensor), kind}, tag,
                                  std::move(tensor))};
  const MeshTensor from = mesh_tensor(seat_.place.pipeline), to = mesh_tensor(pipeline_rank);
  const std::int64_t elements = tensor.elements() * from.parts * (from.scattered ? from.tensor : 1);
  const std::int64_t first = held_elements(from, own_part(), seat_.place.tensor, elements).first;
  std::vector<TicketPtr> tickets;
  for (const ReshardingPiece& piece : resharding_pieces(from, to, plan_.policy.resharding, elements)) {
    if (piece.from_part != own_part() || piece.from_tensor != seat_.place.tensor) continue;
    Tensor part = seat_.pool->take(piece.count);
    std::copy_n(tensor.data() + (piece.first - first), piece.count, part.data());
    tickets.push_back(seat_.transport->send({own, rank_there(pipeline_rank, piece.to_part, piece.to_tensor), kind}, tag,
                                            std::move(part)));
  }
  return tickets;
}

TransferTimes StageMessages::wait_sent(const std::vector<TicketPtr>& tickets) const {
  TransferTimes all;
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const TransferTimes times = seat_.transport->wait_sent(tickets[i]);
    all = {i == 0 ? times.start : std::min(all.start, times.start), std::max(all.end, times.end)};
  }
  return all;
}

void StageMessages::receive(int pipeline_rank, MessageKind kind, const MessageTag& tag, std::int64_t elements,
                            Inbox& inbox) const {
  const int own = world_rank_of(plan_.grid, seat_.place);
  inbox.from = pipeline_rank;
  if (has_shape_of(pipeline_rank)) {
    inbox.pieces.push_back(
        {0, seat_.transport->receive({rank_there(pipeline_rank, own_part(), seat_.place.tensor), own, kind}, tag,
                                     seat_.pool->take(elements))});
    return;
  }
  const MeshTensor from = mesh_tensor(pipeline_rank), to = mesh_tensor(seat_.place.pipeline);
  const std::int64_t whole = elements * to.parts * (to.scattered ? to.tensor : 1);
  const std::int64_t first = held_elements(to, own_part(), seat_.place.tensor, whole).first;
  inbox.elements = elements;
  for (const ReshardingPiece& piece : resharding_pieces(from, to, plan_.policy.resharding, whole)) {
    if (piece.to_part != own_part() || piece.to_tensor != seat_.place.tensor) continue;
    inbox.pieces.push_back(
        {piece.first - first,
         seat_.transport->receive({rank_there(pipeline_rank, piece.from_part, piece.from_tensor), own, kind}, tag,
                                  seat_.pool->take(piece.count))});
  }
}

Received StageMessages::take(Inbox& inbox) const {
  if (!inbox.is_on_its_way()) return {.tensor = std::move(inbox.tensor)};
  Received received = inbox.elements > 0 ? assemble(inbox) : seat_.transport->wait_received(inbox.pieces[0].receive);
  inbox.pieces.clear();
  inbox.elements = 0;
  return received;
}

Received StageMessages::assemble(Inbox& inbox) const {
  Received all;
  for (const Inbox::Piece& piece : inbox.pieces) {
    Received received = seat_.transport->wait_received(piece.receive);
    all.times.end = std::max(all.times.end, received.times.end);
    if (received.tensor.elements() == inbox.elements) {
      all.tensor = std::move(received.tensor);
      continue;
    }
    if (all.tensor.empty()) all.tensor = seat_.pool->take(inbox.elements);
    std::ranges::copy(received.tensor.values(), all.tensor.data() + piece.first);
  }
  // Another tensor rank holds the values and gives them in complete().
  if (all.tensor.empty()) all.tensor = seat_.pool->take(inbox.elements);
  complete(inbox, all.tensor);
  all.times.end = std::max(all.times.end, seat_.clock());
  return all;
}

/// Exchanges among the tensor ranks the values that each was not sent.
void StageMessages::complete(Inbox& inbox, Tensor& whole) const {
  const MeshTensor own = mesh_tensor(seat_.place.pipeline);
  if (own.tensor == 1 || own.scattered || plan_.policy.resharding == Resharding::kDirect) return;
  if (plan_.policy.resharding == Resharding::kBroadcast) {
    seat_.tensor->run(broadcast(whole.values(), 0));
    return;
  }
  const std::vector<std::int64_t> bounds = gathered_bounds(own, inbox.elements);
  seat_.tensor->run(all_gather(whole.values(), bounds));
}

}}  // namespace plumb::executor
