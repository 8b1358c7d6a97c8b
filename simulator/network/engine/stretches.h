#pragma once
// Actions with collectives inside them, cut into stretches, as the event engine runs them.
//
//   F of 3 s computing, 2 s all-reduce on a shared link    ->   blocking lane: {3 s computing}, {2 s flow}
//
// Phases and lanes are those of schedules/phases.h: an action has one phase, the turns of an overlapped pair have one
// each. Stretches last as the cost table says where nothing holds them up: phases then last as long as the action, or as
// the pair, to the picosecond.

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "simulator/network/topology/network_spec.h"

namespace plumb { inline namespace simulator {

inline constexpr std::int32_t kNoClass = -1;

struct Stretch {
  SimTime lasts{0};                                  ///< duration alone; above 0
  SimTime until{0};                                  ///< its end if alone, from the start of the first phase
  std::uint8_t action = 0;                           ///< of a pair: its first (0) or second (1) action
  std::int32_t inner_class = kNoClass;               ///< class of a collective that its group runs together
  double bytes_per_second = 0;                       ///< rate of such a collective alone, by its buffer
  Group group = Group::kTensor;                      ///< for a collective
  CollectiveKind kind = CollectiveKind::kAllReduce;  ///< for a collective
  bool computes = false;  ///< it runs at the rank's speed; the other stretches are collectives that share nothing
  bool completes_bucket = false;  ///< a REDUCE_GRAD inside the action may start at its end
};

enum class LaneKind : std::uint8_t { kBlocking, kBeside };
inline constexpr std::size_t kLanes = 2;

struct Phase {
  std::array<std::int32_t, kLanes + 1> first{};  ///< stretches of lane l are [first[l], first[l + 1])
};

struct Stretches {
  std::vector<std::int32_t> plan_of;      ///< [action] number of its plan; -1 if it is one whole; empty if all are
  std::vector<std::int32_t> first_phase;  ///< [plan + 1]
  std::vector<Phase> phases;
  std::vector<Stretch> stretches;
};

/// The groups that run the collectives of one group and kind inside the actions of one stage.
struct InnerClasses {
  std::map<std::tuple<int, Group, CollectiveKind>, std::int32_t> number;  ///< by stage, group and kind
  std::vector<std::vector<std::int32_t>> group_of;  ///< [class][replica] its number in NetworkSpec::inner, or -1
};
InnerClasses inner_classes(const NetworkSpec& network);

/// Returns the stretches of the compute actions in which a collective can be held up by its links, or in which compute
/// may go at another speed than normal and collectives do not. `inside` are the buckets of each action that starts
/// REDUCE_GRADs inside it: a stretch ends where one is complete. Throws as duration_of (schedules/cost_table.h) does.
Stretches stretches_of(const Schedule& lowered, const CostTable& costs, const NetworkSpec& network,
                       const InnerClasses& classes, const std::map<std::int32_t, std::vector<SimTime>>& inside);

}}  // namespace plumb::simulator
