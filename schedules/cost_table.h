#pragma once
// A CostTable says how long a schedule's actions take. It is all that the simulator knows of hardware and model.
//
//   CostTable costs = chunk_cost_table(4, {.forward = {Seconds{1}}, .input_grad = {Seconds{1}}});
//
// Each (operation, stage, part) has a list of segments. A segment is compute, or a collective of the TP, CP or EP group
// that either blocks the action or runs beside its compute. ZeRO gathers and DP buckets are actions of their own
// (UNSHARD, REDUCE_GRAD), priced by segments as well, and so are messages of weights, whose segments say how long they
// occupy their channel. Memory is given by stage.

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/action.h"
#include "schedules/collective_kind.h"
#include "schedules/time.h"

namespace plumb { inline namespace schedules {

enum class Group : std::uint8_t { kTensor, kContext, kExpert, kData, kPipeline };
inline constexpr int kGroupCount = 5;

/// Returns "tensor", "context", "expert", "data" or "pipeline".
std::string_view group_name(Group group);

/// A piece of an action's cost: computing, or one collective.
struct Segment {
  enum class Kind : std::uint8_t { kCompute, kCollective };
  Kind kind = Kind::kCompute;
  Seconds seconds{0};            ///< how long it lasts with nothing beside it
  bool beside = false;           ///< true for a collective that runs beside the action's compute instead of blocking it
  Group group = Group::kTensor;  ///< for collectives only
  CollectiveKind collective = CollectiveKind::kAllReduce;  ///< for collectives only
  std::int64_t bytes = 0;                                  ///< for collectives only: the whole buffer of one rank
};

/// The segments of an operation, [part]; one entry serves every part.
using SegmentsByPart = std::vector<std::vector<Segment>>;

/// Bytes that one stage holds on its rank.
struct StageMemory {
  // These stay through the whole step.
  std::int64_t parameter_bytes = 0;  ///< one version of the weights, in the precision that computes
  std::int64_t gradient_bytes = 0;
  std::int64_t optimizer_bytes = 0;  ///< moments and master weights
  // These are held for each micro-batch (slice).
  std::int64_t forward_bytes = 0;    ///< held from the start of F to the end of its last backward part
  std::int64_t recompute_bytes = 0;  ///< held besides, from the start of R (without R, of I or B) to that end
  /// The bytes of the two above that the end of I already frees when the backward is split.
  std::int64_t released_at_input_grad_bytes = 0;
  // These are held while an action runs.
  std::int64_t forward_workspace_bytes = 0;
  std::int64_t backward_workspace_bytes = 0;
  // This is held between UNSHARD and RESHARD. Weights that travel take parameter_bytes from RECV_WEIGHTS to RESHARD.
  std::int64_t unsharded_bytes = 0;
};

struct StageCosts {
  std::array<SegmentsByPart, kOpCount> segments{};  ///< [op][part]; an empty list costs nothing
  /// [part of REDUCE_GRAD] when the bucket is complete, counted from the start of the stage's last B or W; ascending.
  /// If empty, every bucket is complete at the end of that action.
  std::vector<Seconds> bucket_offsets;
  StageMemory memory;
  std::int64_t activation_message_bytes = 0;  ///< bytes that SEND_F of this stage moves (per slice)
  std::int64_t gradient_message_bytes = 0;    ///< bytes that SEND_B of this stage moves (per slice)
};

/// A directed link between two pipeline ranks: a message occupies it for bytes / bytes_per_second and is delivered
/// `latency` later.
struct LinkCost {
  Seconds latency{0};
  double bytes_per_second = std::numeric_limits<double>::infinity();
};

struct CostTable {
  std::vector<StageCosts> stages;                 ///< [stage]
  LinkCost default_link;                          ///< between ranks that `links` does not name
  std::map<std::pair<int, int>, LinkCost> links;  ///< (source rank, destination rank)
};

/// Returns the segments of (action.op, action.stage, action.part), an empty list where the table has none.
const std::vector<Segment>& segments_of(const CostTable& costs, const Action& action);

/// Returns how long an action lasts by itself: its blocking segments run in sequence, and those `beside` run in
/// sequence from its start; the action ends when both have ended. Throws SpecError, with the operation and its stage,
/// if a segment or the sum is negative, not finite or above kLongestCost.
SimTime duration_of(const CostTable& costs, const Action& action);

/// Returns the link from one rank to another.
const LinkCost& link_between(const CostTable& costs, int source_rank, int destination_rank);

/// Costs of one chunk, as `--costs` gives them. Each list has one entry (for every stage) or one entry a stage.
struct ChunkCosts {
  std::vector<Seconds> forward{Seconds{1}};
  std::vector<Seconds> input_grad{Seconds{1}};
  std::vector<Seconds> weight_grad{Seconds{1}};
  std::vector<Seconds> backward;   ///< the whole backward; if empty, input_grad + weight_grad
  std::vector<Seconds> recompute;  ///< if empty, forward
  std::vector<Seconds> optimizer{Seconds{0}};
  std::vector<Seconds> move{Seconds{0}};         ///< of each of OFFLOAD, RELOAD, EVICT and LOAD
  std::vector<Seconds> unshard{Seconds{0}};      ///< of UNSHARD
  std::vector<Seconds> reduce_grad{Seconds{0}};  ///< of REDUCE_GRAD
  std::vector<Seconds> weights{Seconds{0}};      ///< of SEND_WEIGHTS and of SEND_WGRAD: on their channel
  Seconds hop_latency{0};                        ///< latency of a hop between different ranks
};

/// Returns a table with those costs, one byte of activation a chunk (so that bytes count chunks), and links that are
/// free but for the latency. Throws SpecError if a list has neither one entry nor one for each of the `stages`.
CostTable chunk_cost_table(int stages, const ChunkCosts& chunk);

}}  // namespace plumb::schedules
