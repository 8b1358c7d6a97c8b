#include "planner/price/pricing.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "planner/price/layer/graph_price.h"
#include "planner/price/layer/model_flops.h"
#include "planner/price/mtp_modules.h"
#include "planner/spec/cluster_sites.h"
#include "planner/spec/rank_layout.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns true if two nodes cost the same, wherever they stand.
bool alike(const GraphNode& one, const GraphNode& other) {
  return one.op == other.op && one.layer == other.layer && one.parameters == other.parameters &&
         one.forward == other.forward && one.input_grad == other.input_grad && one.weight_grad == other.weight_grad &&
         (one.segment >= 0) == (other.segment >= 0);
}

std::optional<GraphTables> graph_tables(const ModelSpec& model, const TrainingSpec& training) {
  if (!model.graph) return {};
  if (!has_sequence(model) && training.sequence != 1) {
    throw SpecError(fmt::format(
        "the samples of {} are no sequences, and {} tokens are asked for: leave --seq away, or set seq to 1",
        model.name, training.sequence));
  }
  GraphTables tables{.nodes = graph_nodes(*model.graph, training.sequence, model.name)};
  for (const GraphNode& node : tables.nodes) {
    const auto known = std::ranges::find_if(tables.kinds, [&](const GraphNode& kind) { return alike(kind, node); });
    tables.kind_of_node.push_back(static_cast<int>(known - tables.kinds.begin()));
    if (known == tables.kinds.end()) tables.kinds.push_back(node);
  }
  tables.cuts = graph_cuts(tables.nodes);
  tables.runs = is_runnable(tables.nodes);
  return tables;
}

std::array<std::int64_t, 8> memory_key(const Layout& layout) {
  return {layout.pipeline > 1 ? 1 : 0,
          layout.tensor,
          layout.context,
          layout.expert,
          layout.expert_tensor,
          layout.sequence_parallel ? 1 : 0,
          layout.microbatch,
          static_cast<std::int64_t>(layout.recompute)};
}

}  // namespace

Pricing::Pricing(const ModelSpec& model, const ClusterSpec& cluster, const TrainingSpec& training,
                 StackLibrary assumable)
    : Pricing(model, cluster.further_sites.empty() ? cluster : all_on_site(cluster, 0), training, assumable, cluster) {
  if (cluster.further_sites.empty()) return;
  cluster_ = cluster;
  for (int site = 0; site < site_count(cluster); ++site)
    sites_.push_back(std::unique_ptr<Pricing>(
        new Pricing(model, all_on_site(cluster, site), training, assumable, cluster)));  // the constructor is private
}

Pricing::Pricing(const ModelSpec& model, const ClusterSpec& cluster, const TrainingSpec& training,
                 StackLibrary assumable, const ClusterSpec& whole)
    : model_(model),
      cluster_(cluster),
      whole_cluster_(whole),
      training_(training),
      assumable_(std::move(assumable)),
      graph_(graph_tables(model, training)),
      kernels_(kernel_prices(cluster, training, std::min(cluster.devices, cluster.devices_per_node))),
      collectives_(collective_prices(cluster, std::min(cluster.devices, cluster.devices_per_node))),
      flops_per_step_(model_flops_per_step(model, training)) {
  if (model.positions > 0 && training.sequence > model.positions) {
    throw SpecError(
        fmt::format("{} has {} positions, and a sequence of {} tokens needs as many: give sequences of {} or fewer",
                    model.name, model.positions, training.sequence, model.positions));
  }
  if (!training_.stack && !assumable_.empty() && assumed_stack(model_, whole_cluster_, {})) {
    training_.stack_assumed = "by layout, model and device";
  }
  if (!model.graph) layers_ = model_layers(model, is_of_own_executor(training_) ? kOwnVocabMultiple : 1);
  for (const Layer& layer : layers_) {
    const auto known = std::ranges::find(kinds_, layer);
    kind_of_layer_.push_back(static_cast<int>(known - kinds_.begin()));
    if (known == kinds_.end()) kinds_.push_back(layer);
  }
}

const StackSpec* Pricing::stack_of(const Layout& layout) const {
  if (training_.stack) return &*training_.stack;
  if (is_of_own_executor(training_)) return nullptr;
  return &assumable_.find(assumed_stack(model_, whole_cluster_, layout)->name)->second;
}

double Pricing::memory_headroom(const Layout& layout) const {
  const StackSpec* stack = stack_of(layout);
  return stack == nullptr ? 0 : stack->memory_headroom;
}

int Pricing::stack_key(const Layout& layout) const {
  if (training_.stack || is_of_own_executor(training_)) return 0;
  const auto assumed = assumable_.find(assumed_stack(model_, whole_cluster_, layout)->name);
  return static_cast<int>(std::distance(assumable_.begin(), assumed));
}

TrainingSpec Pricing::training_in(const Layout& layout) const {
  TrainingSpec training = training_;
  if (training_.stack || is_of_own_executor(training_)) return training;
  training.stack = *stack_of(layout);
  training.stack_assumed = assumed_stack(model_, whole_cluster_, layout)->because;
  return training;
}

LinkCost Pricing::hop(const Layout& layout, int source_rank, int destination_rank) const {
  const int from = site_of_rank(whole_cluster_, layout, source_rank);
  const int to = site_of_rank(whole_cluster_, layout, destination_rank);
  if (from != to) return site_link(whole_cluster_, from, to, layout.data * layout.tensor * layout.context);
  const Pricing& site = sites_.empty() ? *this : *sites_[static_cast<std::size_t>(from)];
  const ProcessGrid grid = grid_of(layout);
  const auto run_of = [&](int rank) {
    const int first = devices_before(layout, rank), count = devices_of_rank(layout, rank);
    if (grid.together == 0) return DeviceRange{.first = first, .count = count};
    return DeviceRange{.first = device_of(grid, first),
                       .count = count,
                       .together = grid.together,
                       .stride = grid.together * grid.pipeline};
  };
  const int tensor = std::max(mesh_of_rank(layout, source_rank).tensor, mesh_of_rank(layout, destination_rank).tensor);
  return pipeline_link(site.collectives_, run_of(source_rank), run_of(destination_rank), site.cluster_.devices_per_node,
                       tensor);
}

const Pricing::Placements& Pricing::placements(const Layout& layout) {
  const bool alike = layout.meshes.empty();  // otherwise the meshes say it, whichever rank's layout this is
  const int tensor = alike ? layout.tensor : 0, data = alike ? layout.data : 0;
  return placements_.of({{tensor, layout.context, data, layout.pipeline, layout.expert, layout.expert_tensor,
                          layout.shard, static_cast<int>(layout.order)},
                         layout.meshes},
                        [&] { return placements_of(layout); });
}

Pricing::Placements Pricing::placements_of(const Layout& layout) const {
  Placements placements;
  const int node = cluster_.devices_per_node;
  // Pipeline ranks after which devices of equal ranks stand at the same places.
  const bool alike = layout.meshes.empty() && layout.order == RankOrder::kStagesApart;
  const int period = alike ? node / std::gcd(devices_of_rank(layout, 0), node) : layout.pipeline;
  for (int rank = 0; rank < layout.pipeline; ++rank) {
    if (rank >= period) {
      placements.inner.push_back(placements.inner[rank - period]);
      placements.replicas.push_back(placements.replicas[rank - period]);
      placements.expert_replicas.push_back(placements.expert_replicas[rank - period]);
      continue;
    }
    Layout of_rank = layout;  // maybe another rank's, so that its micro-batch says nothing of this one's
    of_rank.data = mesh_of_rank(layout, rank).data;
    of_rank.tensor = mesh_of_rank(layout, rank).tensor;
    const ProcessGrid grid = grid_of(of_rank), experts = expert_grid_of(of_rank);
    const int first = devices_before(layout, rank);
    const auto worst = [&](const ProcessGrid& ranks, Group group) {
      return ranks.together > 0 ? worst_placement_apart(ranks, group, rank, node)
                                : worst_placement(ranks, group, first, node);
    };
    placements.inner.push_back({.tensor = worst(grid, Group::kTensor),
                                .context = worst(grid, Group::kContext),
                                .expert = worst(experts, Group::kContext)});
    const auto replicas = [&](const ProcessGrid& ranks) {
      return ReplicaGroups{.sharers = worst(ranks, Group::kContext), .copies = worst(ranks, Group::kData)};
    };
    placements.replicas.push_back(replicas(replica_grid_of(of_rank)));
    placements.expert_replicas.push_back(replicas(expert_replica_grid_of(of_rank)));
  }
  return placements;
}

const std::vector<LayerPrice>& Pricing::layer_prices(const Layout& layout, const InnerGroups& groups) {
  const bool rebuilds_cheap = kernels_.fused && layout.recompute == Recompute::kSelective;
  const std::array<std::int64_t, 17> work_key = {layout.tensor,
                                                 layout.context,
                                                 layout.expert,
                                                 layout.expert_tensor,
                                                 layout.sequence_parallel ? 1 : 0,
                                                 layout.microbatch,
                                                 groups.tensor.ranks,
                                                 groups.tensor.nodes,
                                                 groups.tensor.ranks_per_node,
                                                 groups.context.ranks,
                                                 groups.context.nodes,
                                                 groups.context.ranks_per_node,
                                                 groups.expert.ranks,
                                                 groups.expert.nodes,
                                                 groups.expert.ranks_per_node,
                                                 rebuilds_cheap ? 1 : 0,
                                                 static_cast<std::int64_t>(layout.context_kind)};
  return layer_prices_.of({stack_key(layout), work_key}, [&] { return prices_of(layout, groups, rebuilds_cheap); });
}

std::vector<LayerPrice> Pricing::prices_of(const Layout& layout, const InnerGroups& groups, bool rebuilds_cheap) const {
  const StackSpec* stack = stack_of(layout);
  StackSpec of_kind;
  if (stack != nullptr && layout.context_kind != ContextKind::kOfStack) {
    of_kind = *stack;
    of_kind.context = layout.context_kind;
    stack = &of_kind;
  }
  if (stack != nullptr) require_below_peak(cluster_.device, training_.precision, *stack);
  const LayerWork work = work_of(training_, layout);
  std::vector<LayerPrice> prices;
  if (graph_)
    for (const GraphNode& node : graph_->kinds) prices.push_back(graph_node_price(kernels_, node, layout.microbatch));
  for (const Layer& layer : kinds_) {
    prices.push_back(layer_price(kernels_, collectives_, groups, layer, work, stack, rebuilds_cheap));
  }
  with_modules(prices, [&](const LayerPrice& head, const LayerPrice& block) {
    return with_mtp_modules(head, block, kernels_, model_, work);
  });
  return prices;
}

const std::vector<Pricing::LayerState>& Pricing::layer_states(const Layout& layout) {
  const bool sharded = layout.zero >= 1;
  const int shards = sharded ? state_shards(layout) : 1;
  const int expert_shards = sharded ? expert_state_shards(layout) : 1;
  return layer_states_.of(
      {stack_key(layout),
       {layout.pipeline > 1 ? 1 : 0, layout.tensor, layout.expert, layout.expert_tensor, shards, expert_shards}},
      [&] { return states_of(layout, shards, expert_shards); });
}

std::vector<Pricing::LayerState> Pricing::states_of(const Layout& layout, int shards, int expert_shards) const {
  const StackSpec* stack = stack_of(layout);
  const LayerWork work = work_of(training_, layout);
  const double bytes_per_second = cluster_.device.memory_bytes_per_second * cluster_.device.memory_efficiency;
  std::vector<LayerState> states;
  if (graph_) {
    for (const GraphNode& node : graph_->kinds) {
      states.push_back({.optimizer = graph_optimizer_time(kernels_, node, shards)});
      for (const ParameterTensor& tensor : node.parameters) states.back().parameters += element_count(tensor);
    }
  }
  for (const Layer& kind : kinds_) {
    const std::int64_t experts = expert_parameter_count(kind, work.experts);
    LayerState state{.parameters = parameter_count(kind, layout.tensor, work.experts) - experts,
                     .expert_parameters = experts,
                     .optimizer = optimizer_time(kernels_, kind, work, shards, expert_shards)};
    if (stack != nullptr) {
      const double stepped =
          static_cast<double>(state.parameters) / shards + static_cast<double>(state.expert_parameters) / expert_shards;
      state.optimizer += Seconds{stepped * stack->step_traffic / bytes_per_second};
    }
    states.push_back(state);
  }
  with_modules(states, [&](LayerState head, const LayerState& block) {
    const std::int64_t own = mtp_parameters(model_, layout);
    const Seconds per_parameter = head.optimizer / static_cast<double>(std::max<std::int64_t>(1, head.parameters));
    head.parameters += model_.mtp_modules * block.parameters + own;
    head.expert_parameters += model_.mtp_modules * block.expert_parameters;
    head.optimizer +=
        static_cast<double>(model_.mtp_modules) * block.optimizer + static_cast<double>(own) * per_parameter;
    return head;
  });
  return states;
}

const std::vector<LayerFootprint>& Pricing::layer_footprints(const Layout& layout) {
  return layer_footprints_.of(memory_key(layout), [&] {
    std::vector<LayerFootprint> footprints = by_kind([&](const Layer& kind) {
      return layer_footprint(kind, training_, work_of(training_, layout), layout.recompute);
    });
    with_modules(footprints, [&](const LayerFootprint& head, const LayerFootprint& block) {
      return with_mtp_modules(head, block, model_, training_, layout);
    });
    return footprints;
  });
}

const std::vector<DeviceFootprint>* Pricing::device_footprints(const Layout& layout) {
  if (!kernels_.fused || stack_of(layout) != nullptr || graph_ || layout.context > 1 || model_.mtp_modules > 0 ||
      !std::ranges::all_of(kinds_, has_device_footprint))
    return nullptr;
  return &device_footprints_.of(memory_key(layout), [&] {
    return by_kind([&](const Layer& kind) { return device_footprint(kind, training_, work_of(training_, layout)); });
  });
}

const std::vector<FrameworkFootprint>& Pricing::framework_footprints(const Layout& layout) {
  return framework_footprints_.of({stack_key(layout), memory_key(layout)}, [&] {
    std::vector<FrameworkFootprint> footprints =
        by_kind([&](const Layer& kind) { return framework_footprint(kind, training_, *stack_of(layout), layout); });
    with_modules(footprints, [&](const FrameworkFootprint& head, const FrameworkFootprint& block) {
      return with_mtp_modules(head, block, model_, training_, layout);
    });
    return footprints;
  });
}

}}  // namespace plumb::planner
