#include "planner/evaluate/priced_layout.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "planner/evaluate/data_parallel_price.h"
#include "planner/evaluate/gradient_buckets.h"
#include "planner/evaluate/graph_stages.h"
#include "planner/evaluate/host_offload.h"
#include "planner/evaluate/pipeline_hops.h"
#include "planner/evaluate/stage_passes.h"
#include "planner/partition/balanced_partition.h"
#include "planner/price/memory/device_memory.h"
#include "planner/price/memory/framework_memory.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/framework_split.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

/// A bit for each operation that the schedule has, one pass over it.
unsigned operations_of(const Schedule& schedule) {
  unsigned used = 0;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) used |= 1U << static_cast<unsigned>(action.op);
  }
  return used;
}

bool has(unsigned operations, Op op) {
  return (operations >> static_cast<unsigned>(op) & 1U) != 0;
}

Seconds steady_cost(const LayerPrice& price, Recompute recompute) {
  return total(price.forward) + total(rebuild_price(price, recompute)) + total(price.input_grad) +
         total(price.weight_grad);
}

int part_count(const Schedule& schedule) {
  int parts = 1;
  for (const StagePlace& stage : schedule.stages) parts = std::max(parts, stage.model_part + 1);
  return parts;
}

LayerLoads layer_weights(const Pricing& pricing, const std::vector<LayerPrice>& prices, Recompute recompute) {
  const std::vector<int>& kinds = pricing.kind_of_layer();
  std::vector<Seconds> steady;
  for (const LayerPrice& price : prices) steady.push_back(steady_cost(price, recompute));
  LayerLoads weights{.embedding = steady[kinds.front()], .head = steady[kinds.back()]};
  for (std::size_t layer = 1; layer + 1 < kinds.size(); ++layer) weights.transformer += steady[kinds[layer]];
  weights.transformer /= static_cast<double>(kinds.size() - 2);
  return weights;
}

const Partition& balanced_by_cost(Pricing& pricing, const Layout& layout, const std::vector<LayerPrice>& prices,
                                  const std::vector<StagePlace>& stages) {
  // The other layers decide where each stage rebuilds as many.
  const Recompute weighed = layout.recompute_layers > 0 ? Recompute::kNone : layout.recompute;
  return pricing.balanced_split(prices, weighed, stages, [&] { return layer_weights(pricing, prices, weighed); });
}

Partition partition_of(const Layout& layout, Pricing& pricing, const std::vector<LayerPrice>& prices,
                       const Schedule& schedule) {
  if (pricing.graph() != nullptr) return graph_partition(pricing, layout, schedule);
  const int parts = part_count(schedule);
  if (!layout.split.empty()) {
    if (static_cast<int>(layout.split.size()) != parts) {
      throw SpecError(fmt::format("split names {} stages, but the layout has {}: give one number of layers for each",
                                  layout.split.size(), parts));
    }
    require_all_layers(layout.split, static_cast<int>(pricing.layers().size()) - 2);
    return {.split = layout.split};
  }
  const auto layers = static_cast<int>(pricing.model().layers);
  if (layers < parts) {
    throw SpecError(fmt::format("{} stages cannot share {} layers: use fewer pipeline ranks or chunks", parts, layers));
  }
  if (const StackSpec* stack = pricing.stack_of(layout)) {
    if (auto split = framework_split(stack->stage_split, layers, parts)) return {.split = std::move(*split)};
  }
  return balanced_by_cost(pricing, layout, prices, schedule.stages);
}

/// Returns [layer] its kind, where only the first `rebuilt` transformer layers of each part are rebuilt: the others are
/// of kinds behind all of these (stage_passes.h).
std::vector<int> kinds_with_kept_layers(const Pricing& pricing, const std::vector<int>& split, int rebuilt) {
  std::vector<int> kinds = pricing.kind_of_layer();
  std::size_t layer = 1;  // behind the embedding
  for (const int layers : split) {
    for (int in_part = 0; in_part < layers; ++in_part, ++layer)
      if (in_part >= rebuilt) kinds[layer] += static_cast<int>(pricing.kinds().size());
  }
  return kinds;
}

/// [model part] the kinds of its layers in forward order, of those of all layers.
std::vector<std::span<const int>> kinds_by_part(const Pricing& pricing, std::span<const int> kinds,
                                                const std::vector<int>& split) {
  std::vector<std::span<const int>> parts;
  parts.reserve(split.size());
  const GraphTables* graph = pricing.graph();
  std::size_t first = 0;
  std::size_t end = graph != nullptr ? 0 : 1;  // behind the embedding
  for (std::size_t part = 0; part < split.size(); ++part) {
    end += static_cast<std::size_t>(split[part]);
    if (graph == nullptr && part + 1 == split.size()) ++end;  // the head
    parts.push_back(kinds.subspan(first, end - first));
    first = end;
  }
  return parts;
}

/// Ascending kinds.
void count_kinds(std::vector<KindCount>& counts, std::span<const int> kinds) {
  counts.clear();
  for (const int kind : kinds) {
    auto place = std::ranges::lower_bound(counts, kind, {}, &KindCount::kind);
    if (place == counts.end() || place->kind != kind) place = counts.insert(place, {.kind = kind});
    ++place->count;
  }
}

/// The footprints of layers of these kinds.
template <class Footprint>
std::vector<Footprint> of_kinds(const std::vector<Footprint>& footprints, std::span<const int> kinds) {
  std::vector<Footprint> layers;
  layers.reserve(kinds.size());
  for (const int kind : kinds) layers.push_back(footprints[kind]);
  return layers;
}

Segment collective_segment(Group group, CollectiveKind kind, Seconds seconds, std::int64_t bytes) {
  return {.kind = Segment::Kind::kCollective, .seconds = seconds, .group = group, .collective = kind, .bytes = bytes};
}

void slow_down(StageCosts& costs, Op op, Seconds by) {
  SegmentsByPart& parts = costs.segments[static_cast<std::size_t>(op)];
  if (by.count() > 0 && !parts.empty()) parts.front().push_back({.kind = Segment::Kind::kCompute, .seconds = by});
}

/// Returns the time of an operation of the stage.
Seconds segment_seconds(const StageCosts& costs, Op op) {
  Seconds seconds{0};
  for (const Segment& segment : costs.segments[static_cast<std::size_t>(op)].front()) seconds += segment.seconds;
  return seconds;
}

/// True if gradients are reduced inside the last backward. Copies of stages are summed once a step.
bool reduces_in_buckets(const Layout& layout, const StageOrder& order) {
  return layout.bucket_mib > 0 && layout.zero <= 1 && layout.data * layout.context > 1 && !order.copies;
}

/// Returns the time of one layer inside the stage's last B, or inside its last W where backwards are split.
Seconds last_backward(const LayerPrice& price, Recompute recompute, BackwardForm form) {
  if (form.split) return total(price.weight_grad);
  const Seconds rebuild = form.recompute_actions ? Seconds{0} : total(rebuild_price(price, recompute));
  return rebuild + total(whole_backward(price));
}

/// Sum of the two gradients of a tied table, between the ranks of its two uses.
std::vector<Segment> tied_reduction(const Pricing& pricing, const ProcessGrid& grid, int first_rank, int last_rank) {
  const ModelSpec& model = pricing.model();
  if (!model.tied_embeddings || first_rank == last_rank) return {};
  const LinkCost link =
      pipeline_link(pricing.collectives(), grid, first_rank, last_rank, pricing.cluster().devices_per_node);
  const std::int64_t rows = share(std::get<HeadLayer>(pricing.layers().back()).vocab, grid.tensor);
  const std::int64_t bytes = rows * model.hidden * bytes_per_element(pricing.training().gradient_precision);
  const CollectivePrices over_link{.node = link};
  const Seconds time =
      collective_time(over_link, {.ranks = 2, .nodes = 1, .ranks_per_node = 2}, CollectiveKind::kAllReduce, bytes);
  return {collective_segment(Group::kPipeline, CollectiveKind::kAllReduce, time, bytes)};
}

/// ZeRO shares state over the copies of a stage in one pipeline as over its replicas.
Layout with_copies_as_replicas(Layout layout, const Schedule& schedule, const StageOrder& order) {
  if (!order.copies) return layout;
  const auto copies = static_cast<int>(std::ranges::count(schedule.stages, 0, &StagePlace::model_part));
  layout.data *= copies;
  layout.shard *= copies;
  return layout;
}

/// Returns a stack's footprints by kind, with those of kept layers behind them (stage_passes.h).
std::vector<FrameworkFootprint> footprints_with_kept_layers(Pricing& pricing, const Layout& layout) {
  std::vector<FrameworkFootprint> footprints = pricing.framework_footprints(layout);
  Layout kept = layout;
  kept.recompute = Recompute::kNone;
  const std::vector<FrameworkFootprint>& of_kept = pricing.framework_footprints(kept);
  footprints.insert(footprints.end(), of_kept.begin(), of_kept.end());
  return footprints;
}

/// Returns the memory of a stage of layers of these kinds. `shared` says how many ranks share state.
StageMemory memory_of_tensors(Pricing& pricing, const Layout& layout, std::span<const int> kinds, const Layout& shared,
                              BackwardForm backward) {
  const TrainingSpec& training = pricing.training();
  if (const StackSpec* stack = pricing.stack_of(layout)) {
    if (layout.recompute_layers > 0)
      return framework_memory(footprints_with_kept_layers(pricing, layout), kinds, training, *stack, shared, backward);
    return framework_memory(pricing.framework_footprints(layout), kinds, training, *stack, shared, backward);
  }
  return stage_memory(of_kinds(pricing.layer_footprints(layout), kinds), training, shared, backward);
}

/// Prices a layout's stages one by one.
class StagePricer {
 public:
  StagePricer(Pricing& pricing, const Layout& layout, const Schedule& schedule, const StageOrder& order)
      : pricing_(pricing),
        layout_(layout),
        schedule_(schedule),
        grid_(grid_of(layout)),
        backward_{.split = has(order.operations, Op::kInputGrad),
                  .recompute_actions = has(order.operations, Op::kRecompute)},
        evicts_(has(order.operations, Op::kEvict)),
        in_buckets_(reduces_in_buckets(layout, order)),
        groups_(pricing.placements(layout)),
        shared_(with_copies_as_replicas(layout, schedule, order)),
        states_(pricing.layer_states(shared_)),
        last_part_(order.parts - 1) {
    Partition partition = partition_of(layout, pricing, pricing.layer_prices(layout, groups_.inner[0]), schedule);
    result_.split = std::move(partition.split);
    result_.notes = std::move(partition.notes);
    const GraphTables* graph = pricing.graph();
    if (layout.recompute_layers > 0)
      kinds_of_layers_ = kinds_with_kept_layers(pricing, result_.split, layout.recompute_layers);
    const std::span<const int> all = graph != nullptr ? graph->kind_of_node : pricing.kind_of_layer();
    kinds_of_part_ = kinds_by_part(pricing, kinds_of_layers_.empty() ? all : kinds_of_layers_, result_.split);
    for (const StagePlace& stage : schedule.stages) {
      if (stage.model_part == 0) first_rank_ = stage.rank;
      if (stage.model_part == last_part_) last_rank_ = stage.rank;
    }
  }

  PricedLayout all(const StageOrder& order) {
    std::vector<const StagePlace*> kinds;
    result_.kind_of_stage.reserve(schedule_.stages.size());
    constexpr std::size_t kUsualKinds = 8;  // ends, and stages on ranks whose groups are placed differently
    result_.kinds.stages.reserve(std::min(kUsualKinds, schedule_.stages.size()));
    for (const StagePlace& stage : schedule_.stages) {
      const auto twin =
          std::ranges::find_if(kinds, [&](const StagePlace* other) { return alike(stage, *other); }) - kinds.begin();
      result_.kind_of_stage.push_back(static_cast<int>(twin));
      if (twin < std::ssize(kinds)) continue;
      kinds.push_back(&stage);
      result_.kinds.stages.push_back(price(stage));
    }
    result_.links.reserve(order.hops.size());
    for (const auto& [source, destination] : order.hops)
      result_.links.push_back({source, destination, link(source, destination)});
    return std::move(result_);
  }

 private:
  bool is_inner(const StagePlace& stage) const { return stage.model_part > 0 && stage.model_part < last_part_; }

  /// Stages of the same layers whose groups are placed alike.
  bool alike(const StagePlace& one, const StagePlace& other) const {
    return pricing_.graph() == nullptr && is_inner(one) && is_inner(other) && (!evicts_ || one.rank == other.rank) &&
           std::ranges::equal(kinds_of_part_[one.model_part], kinds_of_part_[other.model_part]) &&
           groups_.inner[one.rank] == groups_.inner[other.rank] &&
           groups_.replicas[one.rank] == groups_.replicas[other.rank] &&
           groups_.expert_replicas[one.rank] == groups_.expert_replicas[other.rank];
  }

  LinkCost link(int source, int destination) const {
    return pipeline_link(pricing_.collectives(), grid_, source, destination, pricing_.cluster().devices_per_node);
  }

  /// The tables of neighbours with alike groups are the same: they are looked up once.
  const std::vector<LayerPrice>& prices_on(int rank) {
    if (prices_ == nullptr || !(groups_.inner[rank] == groups_.inner[prices_rank_])) {
      prices_ = &pricing_.layer_prices(layout_, groups_.inner[rank]);
      if (layout_.recompute_layers > 0) prices_ = &(prices_with_kept_ = with_kept_layers(*prices_));
      prices_rank_ = rank;
    }
    return *prices_;
  }

  /// The state of a layer does not depend on whether it is rebuilt.
  const Pricing::LayerState& state_of(int kind) const {
    return states_[static_cast<std::size_t>(kind) % states_.size()];
  }

  StageCosts price(const StagePlace& stage) {
    const StackSpec* stack = pricing_.stack_of(layout_);
    const std::span<const int> layers = kinds_of_part_[stage.model_part];
    const std::vector<LayerPrice>& prices = prices_on(stage.rank);
    count_kinds(counts_, layers);
    StageCosts costs;
    price_messages(costs, stage);
    StagePasses passes = stage_passes(counts_, prices, layout_.recompute, backward_);
    if (pricing_.kernels().fused)
      add_incoming_copies(passes, pricing_.kernels(), stage.model_part > 0 ? costs.gradient_message_bytes : 0,
                          stage.model_part < last_part_ ? costs.activation_message_bytes : 0);
    price_compute(costs, passes, stack != nullptr ? stack->action_overhead : Seconds{0});

    Replicated held{.groups = groups_.replicas[stage.rank], .expert_groups = groups_.expert_replicas[stage.rank]};
    Seconds optimizer{0};
    for (const auto& [kind, count] : counts_) {
      const Pricing::LayerState& state = state_of(kind);
      held.parameters += count * state.parameters;
      held.expert_parameters += count * state.expert_parameters;
      held.largest_layer = std::max(held.largest_layer, state.parameters + state.expert_parameters);
      optimizer += count * state.optimizer;
    }
    price_replicas(costs, held, layers, prices, passes);
    if (layout_.offload.optimizer) optimizer = offloaded(held, total(passes.backward));
    price_step(costs, stage, optimizer);
    costs.memory = memory_of(stage, layers);
    if (layout_.offload.optimizer)
      result_.host_optimizer_bytes.push_back(std::exchange(costs.memory.optimizer_bytes, 0));
    price_moves(costs, stage);
    return costs;
  }

  void price_replicas(StageCosts& costs, const Replicated& held, std::span<const int> layers,
                      const std::vector<LayerPrice>& prices, const StagePasses& passes) {
    std::vector<GradientBucket> buckets;
    if (in_buckets_) {
      std::vector<LayerGradient> gradients;
      for (const int kind : layers) {
        gradients.push_back({.parameters = state_of(kind).parameters,
                             .expert_parameters = state_of(kind).expert_parameters,
                             .backward = last_backward(prices[kind], layout_.recompute, backward_)});
      }
      const Op host = backward_.split ? Op::kWeightGrad : Op::kBackward;
      buckets = gradient_buckets(gradients, bucket_parameters(pricing_, layout_), segment_seconds(costs, host));
      result_.buckets.push_back(static_cast<int>(buckets.size()));
    }
    DataParallelPrice price =
        data_parallel_price(pricing_, layout_, held, total(passes.forward), total(passes.backward), buckets);
    slow_down(costs, Op::kForward, price.forward_slowed);
    slow_down(costs, Op::kBackward, price.backward_slowed);
    costs.segments[static_cast<std::size_t>(Op::kReduceGrad)] = std::move(price.reduce_grad);
    costs.segments[static_cast<std::size_t>(Op::kUnshard)] = std::move(price.unshard);
    costs.bucket_offsets = std::move(price.bucket_offsets);
  }

  Seconds offloaded(const Replicated& held, Seconds backward) const {
    const auto shard = [&](std::int64_t parameters, int over) {
      return layout_.zero >= 1 ? (parameters + over - 1) / over : parameters;
    };
    const std::int64_t updated =
        shard(held.parameters, state_shards(shared_)) + shard(held.expert_parameters, expert_state_shards(shared_));
    return offloaded_step(pricing_.cluster(), pricing_.training(), updated, backward);
  }

  void price_step(StageCosts& costs, const StagePlace& stage, Seconds optimizer) const {
    std::vector<Segment> step;
    if (pricing_.graph() != nullptr)
      step = graph_tied_reduction(pricing_, grid_, schedule_, result_.split, stage.model_part);
    else if (!is_inner(stage))
      step = tied_reduction(pricing_, grid_, first_rank_, last_rank_);
    step.push_back({.kind = Segment::Kind::kCompute, .seconds = optimizer});
    costs.segments[static_cast<std::size_t>(Op::kOptimizerStep)] = whole(std::move(step));
  }

  StageMemory memory_of(const StagePlace& stage, std::span<const int> layers) {
    if (pricing_.graph() != nullptr && pricing_.stack_of(layout_) == nullptr) {
      return stage_memory(graph_footprints_of_part(pricing_, layout_, result_.split, stage.model_part),
                          pricing_.training(), shared_, backward_);
    }
    const StageMemory memory = memory_of_tensors(pricing_, layout_, layers, shared_, backward_);
    if (pricing_.stack_of(layout_) != nullptr) return memory;
    const std::vector<DeviceFootprint>* device = pricing_.device_footprints(layout_);
    if (device == nullptr) return memory;
    return on_device(memory, of_kinds(*device, layers), shared_, backward_);
  }

  void price_moves(StageCosts& costs, const StagePlace& stage) const {
    const auto price = [&](Op away, Op back, Seconds moved) {
      for (const Op op : {away, back})
        costs.segments[static_cast<std::size_t>(op)] = whole({{.kind = Segment::Kind::kCompute, .seconds = moved}});
    };
    if (layout_.offload.activations)
      price(Op::kOffload, Op::kReload, host_move_time(pricing_.cluster(), costs.memory.forward_bytes));
    const int partner = layout_.pipeline - 1 - stage.rank;
    if (!evicts_ || partner == stage.rank) return;
    const LinkCost to_partner = link(stage.rank, partner);
    price(Op::kEvict, Op::kLoad,
          to_partner.latency + Seconds{static_cast<double>(costs.memory.forward_bytes) / to_partner.bytes_per_second});
  }

  void price_messages(StageCosts& costs, const StagePlace& stage) const {
    const std::int64_t element_bytes = bytes_per_element(pricing_.training().precision);
    if (const GraphTables* graph = pricing_.graph()) {
      std::tie(costs.activation_message_bytes, costs.gradient_message_bytes) =
          graph_message_bytes(*graph, result_.split, stage.model_part, layout_.microbatch * element_bytes);
      return;
    }
    // Both messages have the size of a residual stream: this stage's output, and the gradient of its input.
    const StackSpec* stack = pricing_.stack_of(layout_);
    const LayerWork work = work_of(pricing_.training(), layout_);
    const std::int64_t stream = output_elements(pricing_.layers().front(), work) * element_bytes;
    const bool scattered = stack != nullptr && stack->scattered_messages && !layout_.sequence_parallel;
    costs.activation_message_bytes = costs.gradient_message_bytes = scattered ? stream / layout_.tensor : stream;
  }

  Pricing& pricing_;
  const Layout& layout_;
  const Schedule& schedule_;
  ProcessGrid grid_;
  BackwardForm backward_;
  bool evicts_ = false;  // BPipe's schedules
  bool in_buckets_ = false;
  const Pricing::Placements& groups_;
  const Layout shared_;  // how many share state
  const std::vector<Pricing::LayerState>& states_;
  int last_part_ = 0;
  int first_rank_ = 0;
  int last_rank_ = 0;
  const std::vector<LayerPrice>* prices_ = nullptr;
  std::vector<LayerPrice> prices_with_kept_;
  int prices_rank_ = 0;
  std::vector<int> kinds_of_layers_;  // where only some layers of a stage are rebuilt
  std::vector<std::span<const int>> kinds_of_part_;
  std::vector<KindCount> counts_;
  PricedLayout result_;
};

/// [stage] the value of its kind; empty without values.
template <typename Value>
std::vector<Value> by_stage(const std::vector<Value>& by_kind, const std::vector<int>& kind_of_stage) {
  std::vector<Value> values;
  if (by_kind.empty()) return values;
  values.reserve(kind_of_stage.size());
  for (const int kind : kind_of_stage) values.push_back(by_kind[kind]);
  return values;
}

}  // namespace

StageOrder stage_order(const Schedule& schedule) {
  return {.operations = operations_of(schedule),
          .parts = part_count(schedule),
          .copies = has_copies(schedule),
          .hops = pipeline_hops(schedule)};
}

PricedLayout price_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule, const StageOrder& order) {
  return StagePricer(pricing, layout, schedule, order).all(order);
}

PricedLayout price_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule) {
  return price_layout(pricing, layout, schedule, stage_order(schedule));
}

const Partition& balanced_split(Pricing& pricing, const Layout& layout, const std::vector<StagePlace>& stages) {
  const std::vector<LayerPrice>& prices = pricing.layer_prices(layout, pricing.placements(layout).inner.front());
  return balanced_by_cost(pricing, layout, prices, stages);
}

StageMemory memory_of_all_layers(Pricing& pricing, const Layout& layout, BackwardForm backward) {
  return memory_of_tensors(pricing, layout, pricing.kind_of_layer(), layout, backward);
}

CostTable cost_table(const PricedLayout& priced) {
  CostTable costs{.stages = by_stage(priced.kinds.stages, priced.kind_of_stage)};
  for (const StageLink& link : priced.links) costs.links[{link.source, link.destination}] = link.cost;
  return costs;
}

std::vector<int> buckets_by_stage(const PricedLayout& priced) {
  return by_stage(priced.buckets, priced.kind_of_stage);
}

std::vector<std::int64_t> host_optimizer_bytes_by_stage(const PricedLayout& priced) {
  return by_stage(priced.host_optimizer_bytes, priced.kind_of_stage);
}

std::vector<std::vector<Layer>> layers_by_part(const Pricing& pricing, const std::vector<int>& split) {
  const GraphTables* graph = pricing.graph();
  return graph != nullptr ? runnable_layers_by_part(*graph, split) : layers_by_part(pricing.layers(), split);
}

}}  // namespace plumb::planner
