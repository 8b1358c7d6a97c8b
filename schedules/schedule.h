#pragma once
// A Schedule is the ordered actions of each pipeline rank, and the places of its stages. It holds order only: no times,
// no padding. The meaning of the order is in docs/design.md; every part of Plumb follows it.
//
// A schedule as a generator makes it holds compute actions alone. schedules/passes/lower.h adds messages, collectives
// and the optimizer step; the result is a Schedule as well, and it is the one object that the simulator predicts and
// the executor replays.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/action.h"

namespace plumb { inline namespace schedules {

/// Says which weights a micro-batch sees. A stage's version is its count of OPTIMIZER_STEPs.
enum class WeightPolicy : std::uint8_t {
  kCurrent,       ///< both passes take the newest version (synchronous schedules)
  kStashed,       ///< F takes the newest version, and its backward the same one (PipeDream)
  kVerticalSync,  ///< every stage takes the version that the micro-batch had at stage 0
  kTwoBuffered,   ///< every micro-batch of batch t takes version max(0, t-1) (PipeDream-2BW)
};

/// Says how a message moves (docs/design.md, rule 3).
enum class Sends : std::uint8_t {
  kBuffered,    ///< a transfer starts when its send is issued, its producer has ended and its channel is free
  kRendezvous,  ///< a transfer also waits until the receive is issued
  kBlocking,    ///< rendezvous whose send also holds its rank until the transfer has ended (a check, never simulated)
};

struct StagePlace {
  int rank = 0;        ///< the pipeline rank that runs the stage
  int model_part = 0;  ///< the piece of the model that it is, in forward order
  int lane = 0;        ///< stages of one lane form one pipeline

  friend bool operator==(const StagePlace&, const StagePlace&) = default;
};

struct Schedule {
  std::string name;
  int microbatches = 0;
  WeightPolicy weights = WeightPolicy::kCurrent;
  std::vector<StagePlace> stages;
  std::vector<std::vector<Action>> ranks;  ///< [rank][position]

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// The neighbours of each stage: the stages of its lane with model_part -1 and +1, or -1 where there is none, or where
/// they or the stage itself are shards (schedules/dependencies/shards.h).
struct StageNeighbors {
  std::vector<int> predecessor;  ///< [stage]
  std::vector<int> successor;    ///< [stage]
};
StageNeighbors stage_neighbors(const Schedule& schedule);

/// Returns [stage]: true where a stage of another lane holds the same model part, with weights, on another rank.
std::vector<bool> stages_with_copies(const Schedule& schedule);

/// True if any stage has a copy.
bool has_copies(const Schedule& schedule);

/// True if a list holds SEND or RECV actions, as a lowered schedule over more than one rank does.
bool has_messages(const Schedule& schedule);

/// True if stages take OPTIMIZER_STEPs between their micro-batches, that is if the weights differ between
/// micro-batches.
bool is_asynchronous(const Schedule& schedule);

/// Returns the number of actions over all ranks.
std::int64_t action_count(const Schedule& schedule);

/// Returns "current", "stashed", "vertical_sync" or "two_buffered".
std::string_view policy_name(WeightPolicy policy);

/// Returns the policy of that name, or nothing.
std::optional<WeightPolicy> policy_from_name(std::string_view name);

// Placements on `ranks` ranks. Those of a single pipeline have one lane, and model_part = stage.

/// Places stage s on rank s mod p.
std::vector<StagePlace> loop_placement(int ranks, int stages);

/// Goes forth and back: stage s lies on rank s mod p on even laps, on p-1 - (s mod p) on odd ones (a V for two laps).
std::vector<StagePlace> snake_placement(int ranks, int stages);

/// Returns two lanes, each with a copy of every model part (one a rank): stage s of lane 0 lies on rank s, stage ranks
/// + s of lane 1 on rank ranks-1 - s.
std::vector<StagePlace> bidirectional_placement(int ranks);

}}  // namespace plumb::schedules
