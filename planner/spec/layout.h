#pragma once
// How a model lies over a cluster: the parallel degrees, the schedule, what is sharded and what is recomputed.
//
//   LayoutRequest asked = parse_layout("tp=2,pp=4,recompute=full");   // what is not named stays open (search/search.h)
//
// `Layout` has every question answered; `LayoutRequest` is the same with open questions, and restricts a search.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/spec/training_spec.h"
#include "schedules/process_grid.h"

namespace plumb { inline namespace planner {

/// What F does not keep for the backward (without R actions the backward rebuilds it at its head).
enum class Recompute : std::uint8_t {
  kNone,
  kSelective,  ///< what memory-bound kernels rebuild: norm and activation outputs; with a stack attention's core
  kFull,       ///< everything but each layer's input
};

/// Parts of a training that wait in the host's memory (evaluate/host_offload.h).
struct Offload {
  bool optimizer = false;    ///< its state, which the CPU updates
  bool activations = false;  ///< those that are not needed soon

  friend bool operator==(const Offload&, const Offload&) = default;
};

struct Layout {
  int data = 1;
  int tensor = 1;
  int pipeline = 1;
  int context = 1;                 ///< ranks that share a sequence's tokens (spec/stack_spec.h says how)
  int expert = 1;                  ///< ranks that share the routed experts, of the data * context ones
  int expert_tensor = 1;           ///< ranks that share one expert
  int chunks = 1;                  ///< v, stages a pipeline rank
  int zero = 0;                    ///< ZeRO stage (Rajbhandari et al. 2020)
  bool sequence_parallel = false;  ///< Megatron's, over the tensor group
  std::int64_t microbatch = 1;     ///< sequences
  Recompute recompute = Recompute::kNone;
  Offload offload;
  std::string schedule = "1f1b";  ///< a name of the catalogue
  int group = 0;                  ///< interleaved: micro-batches of a chunk in a row; 0: the ranks
  std::int64_t bucket_mib = 0;  ///< gradients reduced inside the last backward in buckets of so many MiB; 0: behind it
  std::vector<int>
      split;  ///< [model part] transformer layers; empty: balanced by cost (partition/balanced_partition.h)

  friend bool operator==(const Layout&, const Layout&) = default;
};

struct LayoutRequest {
  std::optional<int> data;
  std::optional<int> tensor;
  std::optional<int> pipeline;
  std::optional<int> context;
  std::optional<int> expert;
  std::optional<int> expert_tensor;
  std::optional<int> chunks;
  std::optional<int> zero;
  std::optional<bool> sequence_parallel;
  std::optional<std::int64_t> microbatch;
  std::optional<Recompute> recompute;
  std::optional<Offload> offload;
  std::optional<std::string> schedule;
  std::optional<int> group;
  std::optional<std::int64_t> bucket_mib;
  std::optional<std::vector<int>> split;

  friend bool operator==(const LayoutRequest&, const LayoutRequest&) = default;
};

/// "none", "selective", "full".
std::string_view recompute_name(Recompute recompute);

/// "none", "optimizer", "activations", "optimizer+activations".
std::string_view offload_name(const Offload& offload);

/// Keys dp, tp, pp, cp, ep, etp, v, zero, sp, mbs, recompute, offload, schedule, group, bucket_mib, split (as
/// split=8:8:10:6), comma-separated. Throws SpecError naming the key: unknown (with the nearest known), twice, not a
/// number above 0.
LayoutRequest parse_layout(std::string_view text);

/// "8,8,10,6" -> {8, 8, 10, 6}. Throws SpecError unless it is a list of numbers above 0.
std::vector<int> parse_split(std::string_view text);

/// The inverse of parse_layout: "dp=2,tp=4,pp=2,v=1,zero=1,sp=1,mbs=1,recompute=none,schedule=1f1b"; of a request, what
/// it answers. Degrees of cp, ep and etp of 1 are not named.
std::string to_text(const Layout& layout);
std::string to_text(const LayoutRequest& request);

/// Every question answered as the layout answers it.
LayoutRequest request_of(const Layout& layout);

/// The layout that a request says, with 1, none and 1f1b for what it leaves open.
Layout layout_of(const LayoutRequest& request);

ProcessGrid grid_of(const Layout& layout);

/// The same ranks with context parallelism counted as data parallelism: both have replicas of the same weights, whose
/// gradients are reduced together.
ProcessGrid replica_grid_of(const Layout& layout);

/// The same ranks of each stage as the routed experts see them: tensor is etp, context ep, data their replicas.
ProcessGrid expert_grid_of(const Layout& layout);

/// Micro-batches of one replica in one step. Throws SpecError if they do not divide the batch.
std::int64_t microbatches_of(const TrainingSpec& training, const Layout& layout);

/// JSON form: the keys of the text form, {"dp": 2, ..., "sp": true, "split": [8, 8]}.
LayoutRequest layout_from_json(const nlohmann::json& json, const std::string& place);
nlohmann::ordered_json to_json(const Layout& layout);

}}  // namespace plumb::planner
