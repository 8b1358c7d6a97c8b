#pragma once
// Actions with collectives inside them as the event engine runs them: cut into stretches.
//
//   F of 3 s computing, 2 s all-reduce on a shared link    ->   blocking lane: {3 s computing}, {2 s flow}
//
// A phase is one action (an overlapped pair has two, one after the other). Its two lanes start together, what blocks
// the action and what runs beside that, and it ends with the later of them. Stretches last as the cost table says where
// nothing holds them up: their sum is the action's duration, to the picosecond.

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
  SimTime lasts{0};                                  ///< alone; above 0
  SimTime until{0};                                  ///< where it ends then, from the start of the first phase
  std::int32_t inner_class = kNoClass;               ///< of a collective that its group runs together
  double bytes_per_second = 0;                       ///< of such a collective alone: of its buffer
  Group group = Group::kTensor;                      ///< of a collective
  CollectiveKind kind = CollectiveKind::kAllReduce;  ///< likewise
  bool computes = false;          ///< at the rank's speed; the rest are collectives that share nothing
  bool completes_bucket = false;  ///< at its end a REDUCE_GRAD inside the action may start
};

enum class LaneKind : std::uint8_t { kBlocking, kBeside };
inline constexpr std::size_t kLanes = 2;

struct Phase {
  std::array<std::int32_t, kLanes + 1> first{};  ///< stretches of lane l: [first[l], first[l + 1])
};

struct Stretches {
  std::vector<std::int32_t> plan_of;      ///< [action] number of its plan, -1: one whole; empty: all are
  std::vector<std::int32_t> first_phase;  ///< [plan + 1]
  std::vector<Phase> phases;
  std::vector<Stretch> stretches;
};

/// The groups that run the collectives of one group and kind inside the actions of one stage.
struct InnerClasses {
  std::map<std::tuple<int, Group, CollectiveKind>, std::int32_t> number;  ///< by stage, group and kind
  std::vector<std::vector<std::int32_t>> group_of;  ///< [class][replica] its number in NetworkSpec::inner; -1
};
InnerClasses inner_classes(const NetworkSpec& network);

/// Of the compute actions in which a collective can be held up by its links, or that compute at another speed than
/// normal beside collectives that do not. `inside` are the buckets of each action that starts REDUCE_GRADs inside it:
/// a stretch ends where one is complete. Throws as duration_of (schedules/cost_table.h).
Stretches stretches_of(const Schedule& lowered, const CostTable& costs, const NetworkSpec& network,
                       const InnerClasses& classes, const std::map<std::int32_t, std::vector<SimTime>>& inside);

}}  // namespace plumb::simulator
