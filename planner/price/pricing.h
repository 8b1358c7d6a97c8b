#pragma once
// The tables behind every layout of one model on one cluster: time and memory of each kind of layer, and the placement
// of the groups, each worked out once. evaluate/priced_layout.h asks them for a layout's estimate. Threads may ask at the
// same time.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/partition/balanced_partition.h"
#include "planner/price/collective/collective_price.h"
#include "planner/price/kernel/kernel_price.h"
#include "planner/price/layer/layer_price.h"
#include "planner/price/memory/device_memory.h"
#include "planner/price/memory/framework_memory.h"
#include "planner/price/memory/graph_memory.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/assumed_stack.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"
#include "planner/threads/memo.h"

namespace plumb { inline namespace planner {

/// A layer graph with the sizes of the training's sequences.
struct GraphTables {
  std::vector<GraphNode> nodes;
  std::vector<GraphNode> kinds;  ///< the different nodes
  std::vector<int> kind_of_node;
  std::vector<GraphCut> cuts;  ///< [place]
  bool runs = false;           ///< the executor runs the graph
};

/// The prices of one model on one cluster. It keeps what it has worked out; no answer depends on earlier questions. A
/// cluster of several sites has prices for each, which on_site() returns; its own are those of the first. The
/// constructor throws SpecError like kernel_prices and collective_prices, and also if a sequence has more tokens than
/// the model has learned positions, or if the training gives a sequence to a graph whose samples are no sequences.
class Pricing {
 public:
  /// A training that names no stack gets one for each layout, assumed of `assumable` (spec/assumed_stack.h), which holds
  /// all that may be. An empty one means Plumb's own executor.
  Pricing(const ModelSpec& model, const ClusterSpec& cluster, const TrainingSpec& training,
          StackLibrary assumable = {});

  const ModelSpec& model() const { return model_; }
  const ClusterSpec& cluster() const { return cluster_; }

  /// Returns the prices as if all devices stood on that site (spec/cluster_sites.h).
  Pricing& on_site(int site) { return sites_.empty() ? *this : *sites_[static_cast<std::size_t>(site)]; }

  /// Returns the link of the slowest transfer between the devices of two pipeline ranks.
  LinkCost hop(const Layout& layout, int source_rank, int destination_rank) const;

  /// The training as it was asked for, or with `stack_assumed` where the stack depends on the layout.
  const TrainingSpec& training() const { return training_; }
  const StackLibrary& assumable() const { return assumable_; }

  /// Returns the stack that trains in this layout; null: Plumb's own executor.
  const StackSpec* stack_of(const Layout& layout) const;

  /// Returns the share of a predicted peak that a search keeps free besides, a number of the layout's stack.
  double memory_headroom(const Layout& layout) const;

  /// Returns the training with the stack of this layout, and why it was assumed, if it was.
  TrainingSpec training_in(const Layout& layout) const;

  const std::vector<Layer>& layers() const { return layers_; }
  const KernelPrices& kernels() const { return kernels_; }
  const CollectivePrices& collectives() const { return collectives_; }

  /// The different layers in the order of their first use, and for each layer of the model its index among them.
  const std::vector<Layer>& kinds() const { return kinds_; }
  const std::vector<int>& kind_of_layer() const { return kind_of_layer_; }

  /// Returns the time of a collective over that group.
  Seconds collective_time(const GroupPlacement& placement, CollectiveKind kind, std::int64_t bytes) {
    return collective_times_(collectives_, placement, kind, bytes);
  }

  double flops_per_step() const { return flops_per_step_; }  ///< price/layer/model_flops.h

  /// Returns the tables of a layer graph, whose nodes are then the kinds below; null for other models.
  const GraphTables* graph() const { return graph_ ? &*graph_ : nullptr; }

  /// The replicas of the weights that share their state, and the copies of one share.
  struct ReplicaGroups {
    GroupPlacement sharers;
    GroupPlacement copies;

    friend bool operator==(const ReplicaGroups&, const ReplicaGroups&) = default;
  };
  /// [pipeline rank] placement of the groups of its ranks: those of a layer's collectives, and those that reduce
  /// gradients.
  struct Placements {
    std::vector<InnerGroups> inner;
    std::vector<ReplicaGroups> replicas;
    std::vector<ReplicaGroups> expert_replicas;  ///< of routed experts
  };
  const Placements& placements(const Layout& layout);

  /// Returns the prices by [kind of layer].
  const std::vector<LayerPrice>& layer_prices(const Layout& layout, const InnerGroups& groups);

  /// Returns the balanced split of the model's transformer layers (partition/balanced_partition.h). `prices` must be
  /// those of layer_prices(). `weigh` returns the LayerLoads, and is called once for each question.
  template <typename Weigh>
  const Partition& balanced_split(const std::vector<LayerPrice>& prices, Recompute recompute,
                                  const std::vector<StagePlace>& stages, const Weigh& weigh) {
    std::vector<int> places;
    places.reserve(2 * stages.size());
    for (const StagePlace& stage : stages) {
      places.push_back(stage.rank);
      places.push_back(stage.model_part);
    }
    return splits_.of({&prices, recompute, std::move(places)},
                      [&] { return balanced_partition(static_cast<int>(model_.layers), weigh(), stages); });
  }

  /// Parameters that one rank keeps of a layer, and the time of their update.
  struct LayerState {
    std::int64_t parameters = 0;  ///< besides those of routed experts
    std::int64_t expert_parameters = 0;
    Seconds optimizer{0};  ///< update of the rank's share of the parameters
  };
  /// Returns the states by [kind of layer].
  const std::vector<LayerState>& layer_states(const Layout& layout);

  /// Returns the footprints by [kind of layer] without a stack. Not for graphs, whose nodes share tensors
  /// (price/memory/graph_memory.h).
  const std::vector<LayerFootprint>& layer_footprints(const Layout& layout);

  /// Returns the footprints by [kind of layer] on devices of Plumb's own executor. Null where the cluster's devices are
  /// not known to be such, or the layout divides tensors that kernels/layer/program/places.h does not count divided.
  const std::vector<DeviceFootprint>* device_footprints(const Layout& layout);

  /// Returns the footprints by [kind of layer] with a stack.
  const std::vector<FrameworkFootprint>& framework_footprints(const Layout& layout);

 private:
  /// Without further sites; `whole` decides which stack is assumed.
  Pricing(const ModelSpec& model, const ClusterSpec& cluster, const TrainingSpec& training, StackLibrary assumable,
          const ClusterSpec& whole);

  /// Returns a number that differs for each stack that layouts may have.
  int stack_key(const Layout& layout) const;
  Placements placements_of(const Layout& layout) const;
  std::vector<LayerPrice> prices_of(const Layout& layout, const InnerGroups& groups, bool rebuilds_cheap) const;
  std::vector<LayerState> states_of(const Layout& layout, int shards, int expert_shards) const;

  /// Returns f(kind) of each kind of layer.
  template <typename OfKind>
  auto by_kind(const OfKind& f) const {
    std::vector<decltype(f(kinds_.front()))> values;
    for (const Layer& kind : kinds_) values.push_back(f(kind));
    return values;
  }

  /// Adds modules of multi-token prediction to the head's value, with that of the last block.
  template <typename OfKind, typename Join>
  void with_modules(std::vector<OfKind>& values, const Join& join) const {
    if (model_.mtp_modules == 0) return;
    OfKind& head = values[static_cast<std::size_t>(kind_of_layer_.back())];
    head = join(head, values[static_cast<std::size_t>(*(kind_of_layer_.end() - 2))]);
  }

  ModelSpec model_;
  ClusterSpec cluster_;
  ClusterSpec whole_cluster_;  ///< of a site's prices
  TrainingSpec training_;
  StackLibrary assumable_;
  std::vector<Layer> layers_;
  std::vector<Layer> kinds_;
  std::vector<int> kind_of_layer_;
  std::optional<GraphTables> graph_;
  KernelPrices kernels_;
  CollectivePrices collectives_;
  CollectiveTimes collective_times_;
  double flops_per_step_ = 0;
  Memo<std::pair<std::array<int, 8>, std::vector<RankMesh>>, Placements> placements_;  ///< [degrees, meshes]
  Memo<std::pair<int, std::array<std::int64_t, 17>>, std::vector<LayerPrice>>
      layer_prices_;  ///< [stack; work, groups, recomputation, context kind]
  Memo<std::pair<int, std::array<std::int64_t, 6>>, std::vector<LayerState>>
      layer_states_;  ///< [stack; degrees and shards]
  Memo<std::tuple<const std::vector<LayerPrice>*, Recompute, std::vector<int>>, Partition> splits_;
  using MemoryKey = std::array<std::int64_t, 8>;  ///< whether there are stages, work and recomputation
  Memo<MemoryKey, std::vector<LayerFootprint>> layer_footprints_;
  Memo<MemoryKey, std::vector<DeviceFootprint>> device_footprints_;
  Memo<std::pair<int, MemoryKey>, std::vector<FrameworkFootprint>> framework_footprints_;
  std::vector<std::unique_ptr<Pricing>> sites_;  ///< empty: there is one
};

}}  // namespace plumb::planner
