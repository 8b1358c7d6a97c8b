#pragma once
// The rules of docs/design.md as data: each action, the actions that it waits for, and the moment of them that counts.
// The action graph, the deadlock report, the event engine and the tests' longest path are built from this list. The
// inputs of an action stand in schedules/dependencies/inputs.h, which the compiled engine walks as well.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Numbers the actions of a schedule: id = first_id[rank] + position.
struct ActionIds {
  std::vector<std::int32_t> first_id;  ///< [ranks + 1]; the last is the number of actions
};
ActionIds action_ids(const Schedule& schedule);

struct ActionPlace {
  int rank = 0;
  std::int32_t position = 0;
};

/// Returns the rank and the position in its list of an action id.
ActionPlace place_of(const ActionIds& ids, std::int32_t id);

/// The moment of the earlier action that the later one waits for.
enum class Wait : std::uint8_t {
  kStart,      ///< its start (a receive is issued)
  kOccupied,   ///< the end of its hold on rank or channel: the end of a compute action, the last byte of a transfer
  kDelivered,  ///< the end of its hold and the link's latency
  /// a moment inside it: when the bucket of a REDUCE_GRAD is complete (schedules/dependencies/inner_reductions.h)
  kInside,
};

enum class Reason : std::uint8_t {
  kIssue,       ///< the compute action (or blocking send) before it on the rank
  kData,        ///< an input made on the same rank
  kMessage,     ///< an input made on another rank
  kChannel,     ///< the transfer, collective or move before it on its channel
  kRendezvous,  ///< the receive of a send
  kParameters,  ///< the UNSHARD of its stage
  kReduction,   ///< the REDUCE_GRAD of its stage; for a REDUCE_GRAD, a wait of the REDUCE_GRAD of a copy
  kMoved,       ///< activations that were away: compute waits for the RELOAD or LOAD, these for the OFFLOAD or EVICT
};

struct Dependency {
  std::int32_t from = 0;  ///< action id
  std::int32_t to = 0;
  Wait wait = Wait::kOccupied;
  Reason reason = Reason::kIssue;

  friend bool operator==(const Dependency&, const Dependency&) = default;
};

/// Returns every dependency of a schedule, lowered or not (without messages, the consumer waits for the end of the
/// remote producer itself, as kMessage). A missing action (an input that nobody makes, a send without receive) gives no
/// dependency: validate reports it. An overlapped pair is one node, its first action: that node waits for the inputs of
/// both, and an action that waits for either waits for it. The REDUCE_GRADs of copies are also one node, the first of
/// them (schedules/dependencies/joint_reductions.h).
std::vector<Dependency> dependencies(const Schedule& schedule, Sends sends = Sends::kBuffered);

/// This form is for a caller that already has the table of the schedule's actions
/// (schedules/dependencies/action_table.h).
class ActionTable;
std::vector<Dependency> dependencies(const Schedule& schedule, const ActionTable& table, Sends sends);

/// Calls visit(rank, dependencies) for each rank in turn: together they are dependencies(schedule, table, sends), of
/// which no more than one rank's are held at once. Those of a rank lead to its actions, but for REDUCE_GRADs of copies.
void for_each_rank_dependencies(const Schedule& schedule, const ActionTable& table, Sends sends,
                                const std::function<void(int rank, std::span<const Dependency> found)>& visit);

}}  // namespace plumb::schedules
