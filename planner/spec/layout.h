#pragma once
// The layout of a model on a cluster: the parallel degrees, the schedule, what is sharded and what is recomputed.
//
//   LayoutRequest asked = parse_layout("tp=2,pp=4,recompute=full");   // other keys stay open (search/search.h)
//
// `Layout` has every question answered. `LayoutRequest` leaves some questions open. Several answers to a question are a
// LayoutSpace (spec/layout_space.h).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kernels/layer.h"
#include "planner/spec/offload.h"
#include "planner/spec/rank_mesh.h"
#include "planner/spec/rank_order.h"
#include "planner/spec/training_spec.h"
#include "schedules/process_grid.h"

namespace plumb { inline namespace planner {

struct Layout {
  int data = 1;
  int tensor = 1;
  int pipeline = 1;
  int context = 1;                                   ///< ranks that share a sequence's tokens
  ContextKind context_kind = ContextKind::kOfStack;  ///< the way in which they do
  int expert = 1;         ///< ranks that share the routed experts, out of data * context ranks
  int expert_tensor = 1;  ///< ranks that share one expert
  int chunks = 1;         ///< v, stages a pipeline rank
  int zero = 0;           ///< ZeRO stage (Rajbhandari et al. 2020)
  /// Ranks that share what ZeRO divides, out of data * context ranks: the groups of such ranks are copies of each other
  /// (PyTorch's HSDP, Megatron-Core's instances of its distributed optimizer); 0: all share.
  int shard = 0;
  bool sequence_parallel = false;  ///< Megatron's, over the tensor group
  std::int64_t microbatch = 1;     ///< sequences
  Recompute recompute = Recompute::kNone;
  /// Transformer layers of each stage that `full` rebuilds, its first ones (Megatron-Core's recompute_method block); 0:
  /// all.
  int recompute_layers = 0;
  Offload offload;
  std::string schedule = "1f1b";  ///< name in the catalogue
  int group = 0;                  ///< interleaved schedules: micro-batches of a chunk in a row; 0: the number of ranks
  /// Buckets of so many MiB in which gradients are reduced inside the last backward; 0: they are reduced behind it.
  std::int64_t bucket_mib = 0;
  RankOrder order = RankOrder::kStagesApart;  ///< of ranks on devices
  /// [pipeline rank] meshes of different shape (spec/rank_layout.h), which `tensor` then leaves at 1; empty: all alike.
  std::vector<RankMesh> meshes;
  /// [model part] transformer layers; empty: balanced by cost (partition/balanced_partition.h).
  std::vector<int> split;

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// A question for each key of a layout. `Answer` says what is known of it (layout_keys.h visits them).
template <template <typename> class Answer>
struct LayoutKeys {
  Answer<int> data;
  Answer<int> tensor;
  Answer<int> pipeline;
  Answer<int> context;
  Answer<ContextKind> context_kind;
  Answer<int> expert;
  Answer<int> expert_tensor;
  Answer<int> chunks;
  Answer<int> zero;
  Answer<int> shard;
  Answer<bool> sequence_parallel;
  Answer<std::int64_t> microbatch;
  Answer<Recompute> recompute;
  Answer<int> recompute_layers;
  Answer<Offload> offload;
  Answer<std::string> schedule;
  Answer<int> group;
  Answer<std::int64_t> bucket_mib;
  Answer<RankOrder> order;
  Answer<std::vector<RankMesh>> meshes;
  Answer<std::vector<int>> split;

  friend bool operator==(const LayoutKeys&, const LayoutKeys&) = default;
};

/// Some questions are answered, and the others open.
using LayoutRequest = LayoutKeys<std::optional>;

/// Returns "none", "selective" or "full".
std::string_view recompute_name(Recompute recompute);

/// Throws SpecError if the text is none of these names.
Recompute recompute_from_name(std::string_view name);

/// Returns each KEY=VALUE of a comma-separated list as a pair. Throws SpecError naming a word that is none, or a key that
/// is given twice.
std::vector<std::pair<std::string_view, std::string_view>> layout_words(std::string_view text);

/// Reads a comma-separated list with the keys of layout_keys.h, and split (written split=8:8:10:6). Throws SpecError as
/// layout_words does, and naming a key that is unknown (with the nearest known) or whose value is none of its values.
LayoutRequest parse_layout(std::string_view text);

/// Reads "8,8,10,6" as {8, 8, 10, 6}. Throws SpecError unless it is a list of numbers of 0 or more.
std::vector<int> parse_split(std::string_view text);

/// Returns the inverse of parse_layout: "dp=2,tp=4,pp=2,v=1,zero=1,sp=1,mbs=1,recompute=none,schedule=1f1b". A
/// request's text has the answered keys only. Degrees of cp, ep and etp of 1 are not named.
std::string to_text(const Layout& layout);
std::string to_text(const LayoutRequest& request);

/// Returns the request that has every question answered as the layout answers it.
LayoutRequest request_of(const Layout& layout);

/// Returns the keys that layouts of a family share: dp, tp, pp, cp, ep, etp and mbs.
LayoutRequest family_of(const Layout& layout);

/// Returns the layout of a request, with 1, none and 1f1b for the questions that it leaves open. Meshes say how many
/// pipeline ranks there are; if all are alike, the layout has their degrees instead.
Layout layout_of(const LayoutRequest& request);

/// True if the request answers every question that `keys` answers.
bool answers_all(const LayoutRequest& request, const LayoutRequest& keys);

ProcessGrid grid_of(const Layout& layout);

/// Return the ranks that share the state of a stage under ZeRO, and that of its routed experts.
int state_shards(const Layout& layout);
int expert_state_shards(const Layout& layout);

/// Returns the grid of the same ranks as their weights see it. Data and context parallelism both replicate weights:
/// context is the replicas that share state (state_shards), data the copies of such groups.
ProcessGrid replica_grid_of(const Layout& layout);

/// Returns the grid of the same ranks as the routed experts see it: tensor is etp, context is ep, data is their
/// replicas.
ProcessGrid expert_grid_of(const Layout& layout);

/// Returns the grid of the same ranks as the weights of routed experts see it (replica_grid_of): tensor is etp * ep.
ProcessGrid expert_replica_grid_of(const Layout& layout);

/// Returns the micro-batches of one replica in one step. Throws SpecError if they do not divide the batch.
std::int64_t microbatches_of(const TrainingSpec& training, const Layout& layout);

/// The JSON form has the keys of the text form: {"dp": 2, ..., "sp": true, "split": [8, 8]}.
LayoutRequest layout_from_json(const nlohmann::json& json, const std::string& place);
nlohmann::ordered_json to_json(const Layout& layout);

}}  // namespace plumb::planner
