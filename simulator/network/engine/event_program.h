#pragma once
// A lowered schedule and its costs, made ready for the event engine: the dependencies of each action, the actions that
// its start, its end and its delivery set free, and how long it lasts alone. One program serves all replicas.

#include <cstdint>
#include <vector>

#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/dependencies.h"
#include "schedules/dependencies/joint_reductions.h"
#include "schedules/schedule.h"
#include "simulator/network/engine/stretches.h"
#include "simulator/network/topology/network_spec.h"

namespace plumb { inline namespace simulator {

enum class EventKind : std::uint8_t {
  kFollower,    ///< shares the times of its lead
  kCompute,     ///< occupies its rank
  kMessage,     ///< a flow where it has a route
  kCollective,  ///< a flow over its group where it has a route
  kBeside,      ///< takes its time beside everything else
};

inline constexpr std::size_t kWaits = 4;  ///< number of kinds of Wait (schedules/dependencies/dependencies.h)

struct EventProgram {
  std::int32_t actions = 0;
  ActionTable table;
  std::vector<Dependency> dependencies;  ///< schedules/dependencies/dependencies.h
  JointReductions joint;                 ///< the sums over copies of stages; the first member leads
  // The following are by [action].
  std::vector<EventKind> kind;
  std::vector<std::int32_t> lead;  ///< first of an overlapped pair or of a sum over copies; otherwise itself
  std::vector<std::int32_t> rank;  ///< pipeline rank
  /// For a message, its time on the channel; for a pair, the time of both; for a sum, the longest.
  std::vector<SimTime> alone;
  std::vector<SimTime> latency;       ///< from the end of `alone` to delivery
  std::vector<double> rate;           ///< bytes/s alone; 0 where it moves nothing
  std::vector<std::int32_t> waits;    ///< number of its dependencies
  std::vector<std::int32_t> arrival;  ///< for a send, its receive; otherwise -1
  InnerClasses inner;
  Stretches stretches;          ///< of compute actions with collectives inside
  std::vector<SimTime> inside;  ///< of a REDUCE_GRAD inside its host, its bucket's offset; empty without any
  /// Actions that wait for the start (0), the end of occupation (1), the delivery (2) or a moment inside (3) of an
  /// action: successors[first_successor[kWaits * action + w] .. first_successor[kWaits * action + w + 1]).
  std::vector<std::int32_t> first_successor;
  std::vector<std::int32_t> successors;
};

/// An instance is an action of a replica: replica * actions + action.
inline std::int32_t action_of(const EventProgram& program, std::int32_t instance) {
  return instance < program.actions ? instance : instance % program.actions;
}
inline std::int32_t replica_of(const EventProgram& program, std::int32_t instance) {
  return instance < program.actions ? 0 : instance / program.actions;
}

/// Throws as convert_costs (simulator/engine/action_costs.h) does.
EventProgram event_program(const Schedule& lowered, const CostTable& costs, const NetworkSpec& network, Sends sends);

}}  // namespace plumb::simulator
