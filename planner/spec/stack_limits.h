#pragma once
// The layouts that a framework runs, as data of its stack ("can" in tools/specs/stacks/*.json). A search looks at no
// others (search/stack_conflict.h). What a user asks for by name is predicted all the same, and said.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kernels/layer.h"
#include "planner/spec/context_kind.h"
#include "planner/spec/offload.h"

namespace plumb { inline namespace planner {

/// The defaults are all that Plumb prices.
struct StackLimits {
  std::vector<int> zero = {0, 1, 2, 3};               ///< stages of ZeRO
  std::vector<int> zero_in_pipelines = {0, 1, 2, 3};  ///< those of them that go with pp above 1
  std::vector<Recompute> recompute = {Recompute::kNone, Recompute::kSelective, Recompute::kFull};
  std::vector<std::string> schedules;             ///< names in the catalogue; empty: all
  bool tensor = true;                             ///< tp above 1
  bool tensor_across_nodes = true;                ///< tp above the devices of a node, where nobody asks for it
  bool pipeline = true;                           ///< pp above 1
  bool context = true;                            ///< cp above 1
  std::vector<ContextKind> context_kinds;         ///< ways to divide a sequence besides the stack's own
  bool experts = true;                            ///< ep above 1
  bool sequence_parallel = true;                  ///< sp=1
  bool experts_need_sequence_parallel = false;    ///< a mixture of experts has no tp above 1 without sp=1
  bool shard_groups = true;                       ///< ZeRO over groups of replicas (Layout::shard)
  bool replicas_apart = true;                     ///< the stages of a replica may lie side by side (RankOrder)
  std::vector<Offload> offload = all_offloads();  ///< what may wait in the hosts' memory
  bool offload_needs_zero = false;                ///< the host's optimizer updates ZeRO's shares of the state alone
  bool equal_stages = false;                      ///< the stages divide the layers
  bool named_splits = true;                       ///< the user may name the layers of each stage
  bool recompute_layers = false;                  ///< the first layers of a stage alone may be rebuilt
  bool whole_rounds = false;  ///< interleaved schedules: the pipeline ranks divide the micro-batches

  friend bool operator==(const StackLimits&, const StackLimits&) = default;
};

/// The JSON form has every member by its name. Members that are left out have the defaults above. Reading throws
/// SpecError with the place: an unknown key, a stage of ZeRO outside 0 to 3, a schedule that the catalogue has not.
StackLimits stack_limits_from_json(const nlohmann::json& json, const std::string& place);
nlohmann::ordered_json to_json(const StackLimits& limits);

}}  // namespace plumb::planner
