#pragma once
// A single validator serves every schedule, made by a generator or read from a file, lowered or not.
//
//   for (const Violation& v : validate(schedule)) fmt::print("{}\n", to_text(v));

#include <string>
#include <string_view>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// The faults that a schedule can have (docs/design.md).
enum class Rule : std::uint8_t {
  kPlacement,         ///< a stage without a rank, a model part without a stage, a rank without a stage
  kForeign,           ///< a stage, micro-batch or part that the schedule does not have
  kMisplaced,         ///< an action on a rank that does not own its stage
  kDoubled,           ///< an action listed twice
  kMissing,           ///< a forward or a backward that never comes
  kOrder,             ///< an action ahead of an action of its own stage and micro-batch that it needs
  kMixedBackward,     ///< a micro-batch with both a whole and a split backward
  kLane,              ///< a micro-batch on two lanes
  kPair,              ///< a pair that is not two compute actions
  kUnmatchedMessage,  ///< a send without its receive, or the reverse; a message between stages that exchange nothing
  kMissingMessage,    ///< an input from another rank that no message brings
  /// receives of a channel in another order than its sends; a message on the wrong side of its action
  kMessageOrder,
  kOptimizer,  ///< weight gradients that no OPTIMIZER_STEP takes, or a step without gradients
  kVersion,    ///< weights of a version that is not made yet
  kSharding,   ///< RESHARD without UNSHARD, gradients left unreduced, weights that have not come
  kMemory,     ///< more activations than the rank may hold
  kMoved,      ///< activations moved away or brought back that are not there, or used while they are away
  kDeadlock,   ///< a cycle of waiting
};
std::string_view rule_name(Rule rule);

struct Violation {
  int rank = -1;      ///< -1 for the schedule as a whole
  int position = -1;  ///< position in the rank's list; -1 for the list as a whole
  Rule rule = Rule::kPlacement;
  std::string message;  ///< says what is wrong and what would mend it

  friend bool operator==(const Violation&, const Violation&) = default;
};

/// Returns, for example, "rank 3, position 1: 3B0 stands ahead of its forward 3F0; list 3F0 first (order)".
std::string to_text(const Violation& violation);

/// The limits that a schedule is held to besides the rules that hold for all schedules.
struct ValidationLimits {
  Sends sends = Sends::kBuffered;  ///< if kBlocking, it must run to its end even if a send holds its rank
  /// Chunks that a rank may hold (schedules/liveness.h): no entry, one for all ranks, or one for each.
  std::vector<int> max_activations;
};

/// Returns every violation (of each kind the first thousand), by rank and position. A deadlock is looked for only if
/// nothing else is wrong; it is one violation whose message is the cycle, action by action. Schedules without any
/// backward are forward-only and need none. A schedule is held to the rules of messages if it has any message, and to
/// those of OPTIMIZER_STEP and REDUCE_GRAD if it has any of these. Throws ScheduleError if max_activations has another
/// length.
std::vector<Violation> validate(const Schedule& schedule, const ValidationLimits& limits = {});

/// Throws ScheduleError with the first violation (and how many more there are) if there is any.
void require_valid(const Schedule& schedule, const ValidationLimits& limits = {});

}}  // namespace plumb::schedules
