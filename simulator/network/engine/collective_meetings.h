#pragma once
// Knows which replicas run a collective together, and which of them have come to it.

#include <cstdint>
#include <vector>

#include "simulator/network/engine/event_program.h"

namespace plumb { inline namespace simulator {

class CollectiveMeetings {
 public:
  CollectiveMeetings(const Schedule& schedule, const EventProgram& program, const NetworkSpec& network);

  /// Returns the number in NetworkSpec::collectives of an UNSHARD or REDUCE_GRAD; -1 for one that its replica runs
  /// alone.
  int group_of(std::int32_t instance) const;

  /// Notes that an instance has come to its collective. True with the last of the group.
  bool come(int group, std::int32_t instance);

  /// Notes that a replica has come to a collective of that number in NetworkSpec::inner. True with the last of the
  /// group; the next collective may begin then. A group is in one collective a lane at a time, as its members run the
  /// same list.
  bool come_inside(std::int32_t number, LaneKind lane);

 private:
  std::size_t slot(Op op, int stage, int replica) const;

  const EventProgram& program_;
  const NetworkSpec& network_;
  std::size_t stages_;
  std::vector<std::size_t> slot_of_action_;   ///< [action] slot of a collective, for replica 0
  std::vector<int> group_of_;                 ///< [slot]
  std::vector<std::int32_t> missing_;         ///< [instance of the group's first replica]
  std::vector<std::int32_t> missing_inside_;  ///< [kLanes * number + lane]
};

}}  // namespace plumb::simulator
