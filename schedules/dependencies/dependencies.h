#pragma once
// The rules of docs/design.md as data: each action, the actions that it waits for, and the moment of them that counts.
// The action graph, the deadlock report, the event engine and the tests' longest path are built from this list. The
// inputs of an action stand in schedules/dependencies/inputs.h, which the compiled engine walks as well.

#include <cstdint>
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

}}  // namespace plumb::schedules
