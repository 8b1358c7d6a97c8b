#include "planner/evaluate/stage_price.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "planner/evaluate/gradient_buckets.h"
#include "planner/evaluate/graph_stages.h"
#include "planner/evaluate/host_offload.h"
#include "planner/evaluate/layout_memory.h"
#include "planner/evaluate/tied_reduction.h"

namespace plumb { inline namespace planner {
namespace {

/// Ascending kinds.
void count_kinds(std::vector<KindCount>& counts, std::span<const int> kinds) {
  counts.clear();
  for (const int kind : kinds) {
    auto place = std::ranges::lower_bound(counts, kind, {}, &KindCount::kind);
    if (place == counts.end() || place->kind != kind) place = counts.insert(place, {.kind = kind});
    ++place->count;
  }
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

/// ZeRO shares state over the copies of a stage in one pipeline as over its replicas.
Layout with_copies_as_replicas(Layout layout, const Schedule& schedule, const StageOrder& order) {
  if (!order.copies) return layout;
  const auto copies = static_cast<int>(std::ranges::count(schedule.stages, 0, &StagePlace::model_part));
  layout.data *= copies;
  layout.shard *= copies;
  return layout;
}

}  // namespace

StagePricer::StagePricer(Pricing& pricing, const Layout& layout, const Schedule& schedule, const StageOrder& order,
                         const std::vector<int>& split)
    : pricing_(pricing),
      layout_(layout),
      schedule_(schedule),
      split_(split),
      backward_{.split = order.has(Op::kInputGrad), .recompute_actions = order.has(Op::kRecompute)},
      evicts_(order.has(Op::kEvict)),
      in_buckets_(reduces_in_buckets(layout, order)),
      groups_(pricing.placements(layout)),
      shared_(with_copies_as_replicas(layout, schedule, order)),
      states_(pricing.layer_states(shared_)),
      layers_(pricing, layout, split),
      last_part_(order.parts - 1) {
  for (const StagePlace& stage : schedule.stages) {
    if (stage.model_part == 0) first_rank_ = stage.rank;
    if (stage.model_part == last_part_) last_rank_ = stage.rank;
  }
}

bool StagePricer::alike(const StagePlace& one, const StagePlace& other) const {
  return pricing_.graph() == nullptr && is_inner(one) && is_inner(other) && (!evicts_ || one.rank == other.rank) &&
         std::ranges::equal(layers_.of(one.model_part), layers_.of(other.model_part)) &&
         groups_.inner[one.rank] == groups_.inner[other.rank] &&
         groups_.replicas[one.rank] == groups_.replicas[other.rank] &&
         groups_.expert_replicas[one.rank] == groups_.expert_replicas[other.rank];
}

/// The tables of neighbours with alike groups are the same: they are looked up once.
const std::vector<LayerPrice>& StagePricer::prices_on(int rank) {
  if (prices_ == nullptr || !(groups_.inner[rank] == groups_.inner[prices_rank_])) {
    prices_ = &pricing_.layer_prices(layout_, groups_.inner[rank]);
    if (layout_.recompute_layers > 0) prices_ = &(prices_with_kept_ = with_kept_layers(*prices_));
    prices_rank_ = rank;
  }
  return *prices_;
}

/// The state of a layer does not depend on whether it is rebuilt.
const Pricing::LayerState& StagePricer::state_of(int kind) const {
  return states_[static_cast<std::size_t>(kind) % states_.size()];
}

StagePrice StagePricer::hold(const StagePlace& stage) {
  StagePrice result;
  StageMemory& memory = result.costs.memory;
  memory = memory_of(stage, layers_.of(stage.model_part));
  if (layout_.offload.optimizer) result.host_optimizer_bytes = std::exchange(memory.optimizer_bytes, 0);
  return result;
}

StagePrice StagePricer::price(const StagePlace& stage) {
  const std::span<const int> layers = layers_.of(stage.model_part);
  const std::vector<LayerPrice>& prices = prices_on(stage.rank);
  count_kinds(counts_, layers);
  StagePrice result = hold(stage);
  StageCosts& costs = result.costs;
  price_messages(costs, stage);
  StagePasses passes = stage_passes(counts_, prices, layout_.recompute, backward_);
  if (pricing_.kernels().fused)
    add_incoming_copies(passes, pricing_.kernels(), stage.model_part > 0 ? costs.gradient_message_bytes : 0,
                        stage.model_part < last_part_ ? costs.activation_message_bytes : 0);
  const StackSpec* stack = pricing_.stack_of(layout_);
  price_compute(costs, passes, stack != nullptr ? stack->action_overhead : Seconds{0});

  const Replicated held = state_on(stage.rank);
  price_replicas(result, held, layers, prices, passes);
  price_step(costs, stage, held, passes);
  price_moves(costs, stage);
  return result;
}

/// Returns the parameters of the layers that are counted, on one of the ranks of a pipeline rank.
Replicated StagePricer::state_on(int rank) const {
  Replicated held{.groups = groups_.replicas[rank], .expert_groups = groups_.expert_replicas[rank]};
  for (const auto& [kind, count] : counts_) {
    const Pricing::LayerState& state = state_of(kind);
    held.parameters += count * state.parameters;
    held.expert_parameters += count * state.expert_parameters;
    held.largest_layer = std::max(held.largest_layer, state.parameters + state.expert_parameters);
  }
  return held;
}

void StagePricer::price_replicas(StagePrice& stage, const Replicated& held, std::span<const int> layers,
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
    buckets = gradient_buckets(gradients, bucket_parameters(pricing_, layout_), segment_seconds(stage.costs, host));
    stage.buckets = static_cast<int>(buckets.size());
  }
  DataParallelPrice price =
      data_parallel_price(pricing_, layout_, held, total(passes.forward), total(passes.backward), buckets);
  StageCosts& costs = stage.costs;
  slow_down(costs, Op::kForward, price.forward_slowed);
  slow_down(costs, Op::kBackward, price.backward_slowed);
  costs.segments[static_cast<std::size_t>(Op::kReduceGrad)] = std::move(price.reduce_grad);
  costs.segments[static_cast<std::size_t>(Op::kUnshard)] = std::move(price.unshard);
  costs.bucket_offsets = std::move(price.bucket_offsets);
}

Seconds StagePricer::offloaded(const Replicated& held, Seconds backward) const {
  const auto shard = [&](std::int64_t parameters, int over) {
    return layout_.zero >= 1 ? (parameters + over - 1) / over : parameters;
  };
  const std::int64_t updated =
      shard(held.parameters, state_shards(shared_)) + shard(held.expert_parameters, expert_state_shards(shared_));
  return offloaded_step(pricing_.cluster(), pricing_.training(), updated, backward);
}

void StagePricer::price_step(StageCosts& costs, const StagePlace& stage, const Replicated& held,
                             const StagePasses& passes) const {
  std::vector<Segment> step;
  if (pricing_.graph() != nullptr)
    step = graph_tied_reduction(pricing_, layout_, schedule_, split_, stage.model_part);
  else if (!is_inner(stage))
    step = tied_reduction(pricing_, layout_, first_rank_, last_rank_);
  Seconds update{0};
  for (const auto& [kind, count] : counts_) update += count * state_of(kind).optimizer;
  // The host's copies are launched tensor by tensor, as the device's kernels are.
  if (layout_.offload.optimizer) update = std::max(update, offloaded(held, total(passes.backward)));
  step.push_back({.kind = Segment::Kind::kCompute, .seconds = update});
  costs.segments[static_cast<std::size_t>(Op::kOptimizerStep)] = whole(std::move(step));
}

StageMemory StagePricer::memory_of(const StagePlace& stage, std::span<const int> layers) {
  if (pricing_.graph() != nullptr && pricing_.stack_of(layout_) == nullptr) {
    return stage_memory(graph_footprints_of_part(pricing_, layout_, split_, stage.model_part), pricing_.training(),
                        shared_, backward_);
  }
  return memory_on_device(pricing_, layout_, layers, shared_, backward_);
}

void StagePricer::price_moves(StageCosts& costs, const StagePlace& stage) const {
  const auto price = [&](Op away, Op back, Seconds moved) {
    for (const Op op : {away, back})
      costs.segments[static_cast<std::size_t>(op)] = whole({{.kind = Segment::Kind::kCompute, .seconds = moved}});
  };
  if (layout_.offload.activations)
    price(Op::kOffload, Op::kReload, host_move_time(pricing_.cluster(), costs.memory.forward_bytes));
  const int partner = layout_.pipeline - 1 - stage.rank;
  if (!evicts_ || partner == stage.rank) return;
  const LinkCost to_partner = pricing_.hop(layout_, stage.rank, partner);
  price(Op::kEvict, Op::kLoad,
        to_partner.latency + Seconds{static_cast<double>(costs.memory.forward_bytes) / to_partner.bytes_per_second});
}

void StagePricer::price_messages(StageCosts& costs, const StagePlace& stage) const {
  const std::int64_t element_bytes = bytes_per_element(pricing_.training().precision);
  if (const GraphTables* graph = pricing_.graph()) {
    std::tie(costs.activation_message_bytes, costs.gradient_message_bytes) =
        graph_message_bytes(*graph, split_, stage.model_part, layout_.microbatch * element_bytes);
    return;
  }
  // Both messages have the size of a residual stream: this stage's output, and the gradient of its input.
  const StackSpec* stack = pricing_.stack_of(layout_);
  const LayerWork work = work_of(pricing_.training(), layout_);
  const std::int64_t stream = output_elements(pricing_.layers().front(), work) * element_bytes;
  const bool scattered = stack != nullptr && stack->scattered_messages && !layout_.sequence_parallel;
  costs.activation_message_bytes = costs.gradient_message_bytes = scattered ? stream / layout_.tensor : stream;
}

}}  // namespace plumb::planner
