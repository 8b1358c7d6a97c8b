#pragma once
// The connections between the members of a group, and the moves over them, of which collectives are made. A transport
// gives each member its connections (Transport::connect).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/transport/collective_steps.h"

namespace plumb { inline namespace executor {

/// Ranks that do collectives together. Members are numbered by their position in `ranks`. Groups of the same name and
/// ranks are one group.
struct CommunicatorGroup {
  std::string name;  ///< named in error messages, e.g. "tensor group"
  std::vector<int> ranks;

  // NOLINTNEXTLINE(modernize-use-nullptr): false alarm
  friend auto operator<=>(const CommunicatorGroup&, const CommunicatorGroup&) = default;
};

/// Returns text like "tensor group (ranks 0, 1)".
std::string to_text(const CommunicatorGroup& group);

/// The collective to which a move belongs; both ends must give the same.
struct MoveTag {
  std::int64_t number = 0;  ///< its number among the group's collectives, from 0
  CollectiveKind op = CollectiveKind::kAllReduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing;
  std::int64_t elements = 0;  ///< elements of the whole buffer; -1 where members may differ
  int root = 0;

  friend bool operator==(const MoveTag&, const MoveTag&) = default;
};

/// Returns text like "all_reduce (ring) of 12 values" or "broadcast (tree) of 12 values from member 1".
std::string to_text(const MoveTag& tag);

/// A send and a receive that go on at once. A half that is not there has member -1.
struct Move {
  int send_to = -1;
  std::span<const float> outgoing;
  int receive_from = -1;
  std::span<float> incoming;
  bool add = false;  ///< received values are added to `incoming` instead of replacing it
};

/// One member's connections to the others. Only one thread at a time may use them.
class PointToPoint {
 public:
  virtual ~PointToPoint() = default;

  /// Returns when both halves are over. Moves between two members are matched in order. Throws RunError if both ends
  /// disagree about the collective or the size, or if nothing has moved anywhere for the watchdog's time, and
  /// RunAborted after the transport's abort().
  virtual void move(const MoveTag& tag, const Move& move) = 0;
};

}}  // namespace plumb::executor
