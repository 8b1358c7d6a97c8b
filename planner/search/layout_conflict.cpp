#include "planner/search/layout_conflict.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "planner/search/mesh_conflict.h"
#include "planner/spec/cluster_sites.h"
#include "planner/spec/rank_layout.h"
#include "schedules/generators/catalogue.h"
#include "schedules/limits.h"

namespace plumb { inline namespace planner {
namespace {

std::optional<std::string> tensor_conflict(const ModelSpec& model, const TrainingSpec& training, const Layout& layout) {
  const auto undivided = [&](std::int64_t size, std::string_view what) {
    return fmt::format("tp={} does not divide the {} {}: give a divisor of {}", layout.tensor, size, what, size);
  };
  if (const auto* mamba2 = std::get_if<Mamba2Mixer>(&model.states); mamba2 && mamba2->groups % layout.tensor != 0)
    return undivided(mamba2->groups, "groups of heads that share B and C");
  if (const auto* mamba = std::get_if<MambaMixer>(&model.states); mamba && mamba->channels % layout.tensor != 0)
    return undivided(mamba->channels, "channels of the state mixer");
  if (const auto* net = std::get_if<DeltaNetMixer>(&model.states); net && net->key_heads % layout.tensor != 0)
    return undivided(net->key_heads, "key heads of the delta net");
  if (model.heads % layout.tensor != 0) return undivided(model.heads, "heads");
  if (model.kv_heads % layout.tensor != 0) return undivided(model.kv_heads, "kv heads");
  if (has_part(model, &LayerParts::mlp) && model.ffn % layout.tensor != 0)
    return undivided(model.ffn, "feed-forward channels");
  if (model.experts > 0 && !training.stack) {
    if (model.expert_ffn % layout.tensor != 0) return undivided(model.expert_ffn, "channels of an expert");
    if (model.shared_ffn % layout.tensor != 0) return undivided(model.shared_ffn, "channels of the shared expert");
  }
  if (!layout.sequence_parallel) return std::nullopt;
  if (layout.tensor == 1) return "sp=1 divides over tensor-parallel ranks, and tp=1 has none: give sp=0 or a larger tp";
  if (training.sequence % layout.tensor != 0)
    return undivided(training.sequence, "tokens of a sequence, as sp=1 needs");
  return std::nullopt;
}

/// A layer graph is laid out by replicas and stages alone.
std::optional<std::string> graph_conflict(const ModelSpec& model, const TrainingSpec& training, const Layout& layout) {
  if (!model.graph) return std::nullopt;
  const auto undivided = [&](std::string_view key, int degree) {
    return fmt::format(
        "{}={} divides transformer layers, and {} is a layer graph, whose operators have no divided form: "
        "give {}=1",
        key, degree, model.name, key);
  };
  if (layout.tensor > 1) return undivided("tp", layout.tensor);
  if (layout.context > 1) return undivided("cp", layout.context);
  if (layout.expert > 1) return undivided("ep", layout.expert);
  if (layout.sequence_parallel)
    return "sp=1 divides over tensor-parallel ranks, which a layer graph has not: give sp=0";
  if (training.stack) {
    return fmt::format(
        "stack {} says how a framework runs transformer layers, and {} is a layer graph: leave --stack away",
        training.stack->name, model.name);
  }
  if (layout.recompute == Recompute::kSelective) {
    return fmt::format(
        "recompute=selective rebuilds parts of a transformer layer, and {} is a layer graph: give full or "
        "none",
        model.name);
  }
  if (layout.recompute == Recompute::kFull && !has_blocks(*model.graph)) {
    return fmt::format(
        "recompute=full rebuilds the blocks of a layer graph, and {} has none: write it with blocks, or "
        "give recompute=none",
        model.name);
  }
  if (std::ranges::find(layout.split, 0) != layout.split.end()) {
    return "the split gives a stage no nodes of the graph: give each one or more";
  }
  return std::nullopt;
}

/// Returns the first conflict of the layouts of the pipeline ranks.
template <class Conflict>
std::optional<std::string> conflict_of_ranks(const Layout& layout, const Conflict& conflict_of) {
  if (layout.meshes.empty()) return conflict_of(layout);
  for (int rank = 0; rank < layout.pipeline; ++rank)
    if (auto conflict = conflict_of(layout_of_rank(layout, rank))) return conflict;
  return std::nullopt;
}

/// Returns the reason why the first layers of a stage cannot be rebuilt alone; nothing if they can, or all are.
std::optional<std::string> conflict_of_recomputed_layers(const ModelSpec& model, const TrainingSpec& training,
                                                         const Layout& layout) {
  if (layout.recompute_layers == 0) return std::nullopt;
  if (model.graph)
    return fmt::format("recompute_layers counts transformer layers, and {} is a layer graph: leave it out", model.name);
  if (layout.recompute != Recompute::kFull)
    return fmt::format("recompute_layers={} says how many layers recompute=full rebuilds: give that, or leave it out",
                       layout.recompute_layers);
  if (is_of_own_executor(training)) return "Plumb's own executor rebuilds all layers: leave recompute_layers out";
  return std::nullopt;
}

/// Returns a schedule's entry in the catalogue; null for one of the user's own, which is as it is.
const CatalogueEntry* entry_of(std::string_view schedule) {
  const auto entry = std::ranges::find(catalogue(), schedule, &CatalogueEntry::name);
  return entry == catalogue().end() ? nullptr : &*entry;
}

std::optional<std::string> pipeline_conflict(const ModelSpec& model, const Layout& layout) {
  const CatalogueEntry* const entry = entry_of(layout.schedule);
  if (entry != nullptr && !entry->unpriced.empty()) {
    return fmt::format("schedule {} {}, which have no price: simulate it with --costs, or give schedule=1f1b",
                       layout.schedule, entry->unpriced);
  }
  const std::int64_t stages = std::int64_t{layout.pipeline} * layout.chunks;
  // The first and the last stage of a split may hold the embedding and the head alone.
  const std::int64_t most = layout.split.empty() ? model.layers : model.layers + (model.graph ? 0 : 2);
  if (stages > most) {
    return fmt::format("pp={} with v={} makes {} stages of {} layers: give at most {} stages", layout.pipeline,
                       layout.chunks, stages, model.layers, most);
  }
  const bool overlaps_pairs = entry != nullptr && entry->pairs;  // which gains on a single rank, too
  if (layout.pipeline == 1 && layout.chunks > 1 && !overlaps_pairs) {
    return fmt::format("v={} interleaves the stages of several ranks, and pp=1 has one: give v=1 or a larger pp",
                       layout.chunks);
  }
  if (layout.group > 0 && entry != nullptr && !entry->takes_group) {
    return fmt::format("schedule {} has no groups of micro-batches: leave group away, or give schedule=interleaved",
                       layout.schedule);
  }
  if (layout.split.empty()) return std::nullopt;
  const int placed = std::accumulate(layout.split.begin(), layout.split.end(), 0);
  if (static_cast<std::int64_t>(layout.split.size()) != stages || placed != model.layers) {
    return fmt::format(
        "the split places {} layers on {} stages, but there are {} and {}: give {} numbers that sum up to {}", placed,
        layout.split.size(), model.layers, stages, stages, model.layers);
  }
  for (std::size_t stage = 0; stage < layout.split.size(); ++stage) {
    const bool end = stages > 1 && (stage == 0 || stage + 1 == layout.split.size());
    if (layout.split[stage] < (end ? 0 : 1)) {
      return fmt::format("the split gives stage {} {} layers: only the first and the last of several may hold none",
                         stage, layout.split[stage]);
    }
  }
  return std::nullopt;
}

std::optional<std::string> context_conflict(const ModelSpec& model, const TrainingSpec& training,
                                            const Layout& layout) {
  if (model.states.index() > 0 && layout.context > 1)
    return fmt::format("cp={} divides sequences, and the states of {} pass from token to token: give cp=1",
                       layout.context, model.name);
  if (layout.context_kind != ContextKind::kOfStack) {
    if (layout.context == 1) {
      return fmt::format("cp_kind={} says how ranks divide a sequence, and cp=1 divides none: leave it out",
                         context_kind_name(layout.context_kind));
    }
    if (is_of_own_executor(training)) {
      return "Plumb's own executor has one way to divide a sequence: leave cp_kind out, or name a framework's stack";
    }
  }
  if (layout.context == 1) return std::nullopt;
  if (!training.stack && training.sequence % (2 * layout.context) != 0) {
    return fmt::format("cp={} cuts a sequence into {} runs, which do not divide its {} tokens: give a divisor of {}",
                       layout.context, 2 * layout.context, training.sequence, training.sequence / 2);
  }
  if (training.sequence % layout.context != 0) {
    return fmt::format("cp={} does not divide the {} tokens of a sequence: give a divisor of {}", layout.context,
                       training.sequence, training.sequence);
  }
  return std::nullopt;
}

std::optional<std::string> expert_conflict(const ModelSpec& model, const TrainingSpec& training, const Layout& layout) {
  if (is_of_own_executor(training) && model.experts > 0) {
    if (layout.tensor % layout.expert_tensor != 0)
      return fmt::format(
          "etp={} does not divide tp={}, and in Plumb's own executor tensor ranks share experts: give a divisor of {}, "
          "or name a framework's stack",
          layout.expert_tensor, layout.tensor, layout.tensor);
    if (const int blocks = layout.tensor / layout.expert_tensor; layout.expert % blocks != 0)
      return fmt::format(
          "Plumb's own executor has no two tensor ranks with the same experts: give ep a multiple of {}, or etp={}, or "
          "name a framework's stack",
          blocks, layout.tensor);
  }
  if (layout.expert == 1 && layout.expert_tensor == 1) return std::nullopt;
  if (model.experts == 0) {
    return fmt::format("ep={} with etp={} divides experts, and {} has none: leave both out", layout.expert,
                       layout.expert_tensor, model.name);
  }
  if (model.experts % layout.expert != 0) {
    return fmt::format("ep={} does not divide the {} experts: give a divisor of {}", layout.expert, model.experts,
                       model.experts);
  }
  const std::int64_t ranks = std::int64_t{layout.data} * layout.context * layout.tensor;
  const std::int64_t held = std::int64_t{layout.expert} * layout.expert_tensor;
  if (ranks % held != 0) {
    return fmt::format(
        "ep={} times etp={} is {}, which does not divide the {} ranks of a stage (dp x cp x tp): give a "
        "divisor of {}",
        layout.expert, layout.expert_tensor, held, ranks, ranks);
  }
  return std::nullopt;
}

std::optional<std::string> order_conflict(const TrainingSpec& training, const Layout& layout) {
  if (layout.order == RankOrder::kStagesApart) return std::nullopt;
  if (is_of_own_executor(training))
    return fmt::format(
        "order={} is another place for ranks, which Plumb's own executor leaves to its launcher: leave "
        "order out, or name a framework's stack",
        rank_order_name(layout.order));
  if (layout.pipeline == 1 || layout.data == 1)
    return fmt::format("order={} puts pp ahead of dp, and there is one of them: leave order out",
                       rank_order_name(layout.order));
  const int of_experts = layout.expert * layout.expert_tensor;
  if ((layout.tensor * layout.context) % of_experts == 0) return std::nullopt;
  return fmt::format(
      "order={} puts other stages between the replicas, and ep={} times etp={} spreads experts over "
      "them: let it divide tp times cp, or leave order out",
      rank_order_name(layout.order), layout.expert, layout.expert_tensor);
}

std::optional<std::string> shard_conflict(const TrainingSpec& training, const Layout& layout) {
  if (layout.shard == 0) return std::nullopt;
  if (is_of_own_executor(training) && layout.shard == 1)
    return "shard=1 divides nothing: give zero=0, a larger shard, or a framework's stack";
  if (layout.zero == 0)
    return fmt::format("shard={} shares what ZeRO divides, and zero=0 divides nothing: give zero=1, 2 or 3",
                       layout.shard);
  const int replicas = layout.data * layout.context;
  if (replicas % layout.shard != 0) {
    return fmt::format("shard={} does not divide the {} replicas (dp x cp): give a divisor of {}", layout.shard,
                       replicas, replicas);
  }
  const int of_experts = layout.expert * layout.expert_tensor;
  if ((std::int64_t{layout.shard} * layout.tensor) % of_experts != 0) {
    return fmt::format(
        "shard={} times tp={} does not hold whole groups of ep={} times etp={} ranks: give a shard that makes a "
        "multiple of {}",
        layout.shard, layout.tensor, layout.expert, layout.expert_tensor, of_experts);
  }
  return std::nullopt;
}

/// False for a schedule from a file.
bool enters_at_both_ends(std::string_view schedule) {
  return std::ranges::any_of(catalogue(),
                             [&](const CatalogueEntry& entry) { return entry.both_ends && entry.name == schedule; });
}

}  // namespace

std::optional<std::string> layout_conflict(const ModelSpec& model, const TrainingSpec& training,
                                           const ClusterSpec& cluster, const Layout& layout) {
  if (!layout.meshes.empty() && site_count(cluster) > 1)
    return "meshes of different shape lie on one site: give a cluster of equal devices";
  if (layout.order == RankOrder::kReplicasApart && site_count(cluster) > 1)
    return fmt::format("order={} places the stages of a replica side by side, and stages lie on sites: leave order out",
                       rank_order_name(layout.order));
  if (auto conflict = layout_conflict(model, training, cluster.devices, layout)) return conflict;
  return site_conflict(cluster, layout);
}

std::optional<std::string> layout_conflict(const ModelSpec& model, const TrainingSpec& training, int devices,
                                           const Layout& layout) {
  if (auto conflict = mesh_conflict(model, devices, layout)) return conflict;
  if (const std::int64_t degrees = devices_of(layout); degrees != devices) {
    const std::string context = layout.context > 1 ? fmt::format(" times cp={}", layout.context) : "";
    return fmt::format("dp={} times tp={} times pp={}{} is {}, not the {} devices: let the product be {}", layout.data,
                       layout.tensor, layout.pipeline, context, degrees, devices, devices);
  }
  const auto in_graph = [&](const Layout& of_rank) { return graph_conflict(model, training, of_rank); };
  if (auto conflict = conflict_of_ranks(layout, in_graph)) return conflict;
  if (auto conflict = context_conflict(model, training, layout)) return conflict;
  if (auto conflict = expert_conflict(model, training, layout)) return conflict;
  const auto in_tensors = [&](const Layout& of_rank) {
    return model.graph ? std::nullopt : tensor_conflict(model, training, of_rank);
  };
  if (auto conflict = conflict_of_ranks(layout, in_tensors)) return conflict;
  if (auto conflict = pipeline_conflict(model, layout)) return conflict;
  if (auto conflict = shard_conflict(training, layout)) return conflict;
  if (auto conflict = order_conflict(training, layout)) return conflict;
  if (auto conflict = conflict_of_recomputed_layers(model, training, layout)) return conflict;
  if (layout.bucket_mib > 0 && !is_of_own_executor(training))
    return fmt::format(
        "bucket_mib={} is of Plumb's own executor, and a framework's buckets stand in its stack: leave "
        "bucket_mib out",
        layout.bucket_mib);
  if (layout.bucket_mib > 0 && layout.zero >= 2) {
    return fmt::format(
        "zero={} reduces every gradient at once, and bucket_mib={} once a step: give zero=0 or 1, or leave "
        "bucket_mib out",
        layout.zero, layout.bucket_mib);
  }
  if (training.global_batch % (layout.data * layout.microbatch) != 0) {
    return fmt::format(
        "a global batch of {} does not divide into dp={} replicas of micro-batches of mbs={}: change one of the "
        "three",
        training.global_batch, layout.data, layout.microbatch);
  }
  if (enters_at_both_ends(layout.schedule) && (layout.pipeline % 2 != 0 || microbatches_of(training, layout) < 2)) {
    return fmt::format(
        "{} takes micro-batches at both ends, and there are pp={} ranks and {} micro-batches: give an even pp, and two "
        "micro-batches or more",
        layout.schedule, layout.pipeline, microbatches_of(training, layout));
  }
  constexpr std::int64_t kLargestMicrobatch = 1 << 28;
  if (layout.microbatch > kLargestMicrobatch / training.sequence) {
    return fmt::format("mbs={} with sequences of {} tokens is more than any device can hold: give a smaller mbs",
                       layout.microbatch, training.sequence);
  }
  const std::int64_t forwards = microbatches_of(training, layout) * layout.pipeline * layout.chunks;
  if (forwards > kMostSearchedForwards) {
    return fmt::format(
        "{} micro-batches on {} stages make a schedule of {} forwards, too long to simulate: give a larger mbs, "
        "or fewer stages, for at most {}",
        microbatches_of(training, layout), layout.pipeline * layout.chunks, forwards, kMostSearchedForwards);
  }
  return std::nullopt;
}

}}  // namespace plumb::planner
