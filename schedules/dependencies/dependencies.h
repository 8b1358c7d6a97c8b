#pragma once
// docs/design.md as data: which action waits for which, and for what of it. The action graph, and through it
// deadlock reports and the tests' longest path, are built from this list; the engine and the executor follow the same
// rules on their own and are tested against it.

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
ActionPlace place_of(const ActionIds& ids, std::int32_t id);

/// What of the earlier action is waited for.
enum class Wait : std::uint8_t {
  kStart,      ///< its start (a receive is issued)
  kOccupied,   ///< the end of its hold on rank or channel: a compute action's end, the last byte of a transfer
  kDelivered,  ///< as above and the link's latency
  kInside,  ///< a moment of it: when the bucket of a REDUCE_GRAD is complete (schedules/dependencies/inner_reductions.h)
};

enum class Reason : std::uint8_t {
  kIssue,       ///< the compute action (or blocking send) before it on the rank
  kData,        ///< an input made on the same rank
  kMessage,     ///< an input made on another rank
  kChannel,     ///< the transfer, collective or move before it on its channel
  kRendezvous,  ///< the receive of a send
  kParameters,  ///< the UNSHARD of its stage
  kReduction,   ///< the REDUCE_GRAD of its stage; for a REDUCE_GRAD, what the same of a copy waits for
  kMoved,       ///< activations that were away: the RELOAD or LOAD for them, or for these the OFFLOAD or EVICT
};

struct Dependency {
  std::int32_t from = 0;  ///< action id
  std::int32_t to = 0;
  Wait wait = Wait::kOccupied;
  Reason reason = Reason::kIssue;

  friend bool operator==(const Dependency&, const Dependency&) = default;
};

/// Every dependency of a schedule, lowered or not (without messages, the consumer waits for the end of the remote
/// producer itself, as kMessage). What is missing (an input that nobody makes, a send without receive) has no
/// dependency: validate reports it. An overlapped pair is one node, its first action: that one waits for the inputs of
/// both, and whoever waits for either waits for it. The REDUCE_GRADs of copies are likewise one node, the first of them
/// (schedules/dependencies/joint_reductions.h).
std::vector<Dependency> dependencies(const Schedule& schedule, Sends sends = Sends::kBuffered);

/// The same for one who has the table of the schedule's actions (schedules/dependencies/action_table.h) already.
class ActionTable;
std::vector<Dependency> dependencies(const Schedule& schedule, const ActionTable& table, Sends sends);

/// Calls visit(rank, dependencies) for each rank in turn: together they are dependencies(schedule, table, sends), of
/// which no more than one rank's are held at once. Those of a rank lead to its actions, but for REDUCE_GRADs of copies.
void for_each_rank_dependencies(const Schedule& schedule, const ActionTable& table, Sends sends,
                                const std::function<void(int rank, std::span<const Dependency> found)>& visit);

}}  // namespace plumb::schedules
