#pragma once
// Messages between stages, as one rank sees them. A tensor goes to the rank with the same coordinates on the other
// pipeline rank. Where the meshes of the two pipeline ranks have different shapes, pieces of it go to several ranks,
// which complete the tensor among their tensor ranks (division/resharding_pieces.h).

#include <optional>
#include <vector>

#include "executor/replay/replay.h"

namespace plumb { inline namespace executor {

/// A tensor that waits for its consumer: it was made on this rank, or it is on its way.
struct Inbox {
  struct Piece {
    std::int64_t first = 0;  ///< position of its first element in the tensor
    TicketPtr receive;
  };
  Tensor tensor;
  std::vector<Piece> pieces;
  std::int64_t elements = 0;  ///< elements of the whole tensor, where it comes in pieces
  int from = 0;               ///< pipeline rank that sends it
  std::size_t span = 0;       ///< position of the RECV's span

  bool is_on_its_way() const { return !pieces.empty() || elements > 0; }
};

class StageMessages {
 public:
  /// `plan` and `seat` must outlive the object.
  StageMessages(const ReplayPlan& plan, const ReplaySeat& seat) : plan_(plan), seat_(seat) {}

  /// Posts a tensor of this rank's stage to a pipeline rank.
  std::vector<TicketPtr> send(int pipeline_rank, MessageKind kind, const MessageTag& tag, Tensor tensor) const;

  /// Waits until all pieces have left, and returns from when to when they moved.
  TransferTimes wait_sent(const std::vector<TicketPtr>& tickets) const;

  /// Posts the receives of a tensor of `elements` elements from a pipeline rank.
  void receive(int pipeline_rank, MessageKind kind, const MessageTag& tag, std::int64_t elements, Inbox& inbox) const;

  /// Waits for the tensor and hands it out. All tensor ranks of a mesh must call this in the same order.
  Received take(Inbox& inbox) const;

 private:
  MeshTensor mesh_tensor(int pipeline_rank) const;
  bool has_shape_of(int pipeline_rank) const;
  int rank_there(int pipeline_rank, int part, int tensor) const;
  int own_part() const;
  Received assemble(Inbox& inbox) const;
  void complete(Inbox& inbox, Tensor& whole) const;

  const ReplayPlan& plan_;
  const ReplaySeat& seat_;
};

}}  // namespace plumb::executor
