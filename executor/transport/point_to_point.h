#pragma once
// How the members of a group reach each other: the moves that collectives are made of. A transport gives each member
// its lines (Transport::connect).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/transport/collective_steps.h"

namespace plumb { inline namespace executor {

/// Ranks that do collectives together. Members are numbered by their place in `ranks`. Groups of the same name and
/// ranks are one group.
struct CommunicatorGroup {
  std::string name;  ///< for messages, e.g. "tensor group"
  std::vector<int> ranks;

  // NOLINTNEXTLINE(modernize-use-nullptr): false alarm
  friend auto operator<=>(const CommunicatorGroup&, const CommunicatorGroup&) = default;
};

/// "tensor group (ranks 0, 1)".
std::string to_text(const CommunicatorGroup& group);

/// Which collective a move belongs to; both ends must say the same.
struct MoveTag {
  std::int64_t number = 0;  ///< of the group's collectives, from 0
  CollectiveOp op = CollectiveOp::kAllReduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing;
  std::int64_t elements = 0;  ///< of the whole buffer; -1 where members may differ
  int root = 0;

  friend bool operator==(const MoveTag&, const MoveTag&) = default;
};

/// "all_reduce (ring) of 12 values"; "broadcast (tree) of 12 values from member 1".
std::string to_text(const MoveTag& tag);

/// Both halves go on at once; a half that is not there has member -1.
struct Move {
  int send_to = -1;
  std::span<const float> outgoing;
  int receive_from = -1;
  std::span<float> incoming;
  bool add = false;  ///< adds to `incoming` instead of replacing it
};

/// One member's lines to the others. One thread at a time uses them.
class PointToPoint {
 public:
  virtual ~PointToPoint() = default;

  /// Returns when both halves are over. Moves between two members are matched in order. Throws RunError where both ends
  /// disagree about the collective or the size, or where nothing has moved anywhere for the watchdog's time;
  /// RunAborted after the transport's abort().
  virtual void move(const MoveTag& tag, const Move& move) = 0;
};

}}  // namespace plumb::executor
