#include "planner/cost/cost_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "planner/cost/data_parallel_price.h"
#include "planner/cost/framework/framework_memory.h"
#include "planner/cost/gradient_buckets.h"
#include "planner/cost/graph_stages.h"
#include "planner/cost/host_offload.h"
#include "planner/cost/partition.h"
#include "planner/cost/pipeline_hops.h"
#include "planner/cost/stage_memory.h"
#include "schedules/error.h"

namespace plumb {
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

PassPrice rebuild_price(const LayerPrice& price, Recompute recompute) {
  if (recompute == Recompute::kFull) return price.rebuild_full;
  return recompute == Recompute::kSelective ? price.rebuild_selective : PassPrice{};
}

PassPrice times(PassPrice price, int count) {
  price.compute *= count;
  price.host *= count;
  for (PassPrice::ByKind& kinds : price.collective_seconds) {
    for (Seconds& seconds : kinds) seconds *= count;
  }
  for (auto& kinds : price.collective_bytes) {
    for (std::int64_t& bytes : kinds) bytes *= count;
  }
  return price;
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

LayerWeights layer_weights(const Pricing& pricing, const std::vector<LayerPrice>& prices, Recompute recompute) {
  const std::vector<int>& kinds = pricing.kind_of_layer();
  std::vector<Seconds> steady;
  for (const LayerPrice& price : prices) steady.push_back(steady_cost(price, recompute));
  LayerWeights weights{.embedding = steady[kinds.front()], .head = steady[kinds.back()]};
  for (std::size_t layer = 1; layer + 1 < kinds.size(); ++layer) weights.transformer += steady[kinds[layer]];
  weights.transformer /= static_cast<double>(kinds.size() - 2);
  return weights;
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
    return {.split = layout.split};
  }
  const auto layers = static_cast<int>(pricing.model().layers);
  if (layers < parts) {
    throw SpecError(fmt::format("{} stages cannot share {} layers: use fewer pipeline ranks or chunks", parts, layers));
  }
  if (pricing.training().stack && layers % parts == 0) {  // as frameworks split
    return {.split = std::vector<int>(static_cast<std::size_t>(parts), layers / parts)};
  }
  return balanced_partition(layers, layer_weights(pricing, prices, layout.recompute), schedule.stages);
}

/// [model part] the kinds of its layers in forward order.
std::vector<std::vector<int>> kinds_in_order(const Pricing& pricing, const std::vector<int>& split) {
  std::vector<std::vector<int>> parts(split.size());
  if (const GraphTables* graph = pricing.graph()) {
    const std::vector<int> first = first_nodes(split);
    for (std::size_t part = 0; part < split.size(); ++part)
      parts[part].assign(graph->kind_of_node.begin() + first[part], graph->kind_of_node.begin() + first[part + 1]);
    return parts;
  }
  const std::vector<int>& kinds = pricing.kind_of_layer();
  parts.front().push_back(kinds.front());
  std::size_t layer = 1;
  for (std::size_t part = 0; part < split.size(); ++part) {
    for (int i = 0; i < split[part]; ++i) parts[part].push_back(kinds[layer++]);
  }
  parts.back().push_back(kinds.back());
  return parts;
}

/// [model part][kind of layer] how many layers of that kind it has.
std::vector<std::vector<int>> kind_counts(const Pricing& pricing, const std::vector<std::vector<int>>& parts) {
  std::vector<std::vector<int>> counts;
  for (const std::vector<int>& kinds : parts) {
    std::vector<int>& count = counts.emplace_back(pricing.kind_count(), 0);
    for (const int kind : kinds) ++count[kind];
  }
  return counts;
}

/// The footprints of layers of these kinds.
std::vector<LayerFootprint> of_kinds(const std::vector<LayerFootprint>& footprints, const std::vector<int>& kinds) {
  std::vector<LayerFootprint> layers;
  layers.reserve(kinds.size());
  for (const int kind : kinds) layers.push_back(footprints[kind]);
  return layers;
}

SegmentsByPart whole(std::vector<Segment> segments) {
  SegmentsByPart parts;  // a braced list would copy
  parts.push_back(std::move(segments));
  return parts;
}

Segment collective_segment(Group group, CollectiveKind kind, Seconds seconds, std::int64_t bytes) {
  return {.kind = Segment::Kind::kCollective, .seconds = seconds, .group = group, .collective = kind, .bytes = bytes};
}

/// What a stage's passes last by themselves.
struct StagePasses {
  PassPrice forward, rebuild, input_grad, weight_grad, backward;
};

StagePasses stage_passes(const std::vector<int>& counts, const std::vector<LayerPrice>& prices, Recompute recompute,
                         BackwardForm form) {
  StagePasses passes;
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    const LayerPrice& price = prices[kind];
    passes.forward += times(price.forward, counts[kind]);
    passes.rebuild += times(rebuild_price(price, recompute), counts[kind]);
    passes.input_grad += times(price.input_grad, counts[kind]);
    passes.weight_grad += times(price.weight_grad, counts[kind]);
    passes.backward += times(whole_backward(price), counts[kind]);
  }
  if (form.recompute_actions) return passes;
  passes.input_grad += passes.rebuild;
  passes.backward += passes.rebuild;
  return passes;
}

void price_compute(StageCosts& costs, const StagePasses& passes, Seconds action_overhead) {
  const auto put = [&](Op op, PassPrice pass) {
    if (total(pass).count() > 0) pass.compute += action_overhead;
    costs.segments[static_cast<std::size_t>(op)] = whole(segments_for(pass));
  };
  put(Op::kForward, passes.forward);
  put(Op::kRecompute, passes.rebuild);
  put(Op::kInputGrad, passes.input_grad);
  put(Op::kWeightGrad, passes.weight_grad);
  put(Op::kBackward, passes.backward);
}

/// How long an operation of the stage lasts.
Seconds segment_seconds(const StageCosts& costs, Op op) {
  Seconds seconds{0};
  for (const Segment& segment : costs.segments[static_cast<std::size_t>(op)].front()) seconds += segment.seconds;
  return seconds;
}

/// True if gradients are reduced inside the last backward. Copies of stages are summed once a step.
bool reduces_in_buckets(const Layout& layout, const Schedule& schedule) {
  const std::vector<bool> copied = stages_with_copies(schedule);
  return layout.bucket_mib > 0 && layout.zero <= 1 && layout.data * layout.context > 1 &&
         std::ranges::find(copied, true) == copied.end();
}

/// Of one layer, inside the stage's last B, or its last W where backwards are split.
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
  const std::int64_t rows = (model.vocab + grid.tensor - 1) / grid.tensor;
  const std::int64_t bytes = rows * model.hidden * bytes_per_element(pricing.training().gradient_precision);
  const CollectivePrices over_link{.node = link};
  const Seconds time =
      collective_time(over_link, {.ranks = 2, .nodes = 1, .ranks_per_node = 2}, CollectiveKind::kAllReduce, bytes);
  return {collective_segment(Group::kPipeline, CollectiveKind::kAllReduce, time, bytes)};
}

void price_links(CostTable& costs, const Pricing& pricing, const ProcessGrid& grid, const Schedule& schedule) {
  for (const auto& [source, destination] : pipeline_hops(schedule)) {
    costs.links[{source, destination}] =
        pipeline_link(pricing.collectives(), grid, source, destination, pricing.cluster().devices_per_node);
  }
}

}  // namespace

PricedLayout price_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule) {
  const ProcessGrid grid = grid_of(layout);
  const unsigned operations = operations_of(schedule);
  const BackwardForm backward{.split = has(operations, Op::kInputGrad),
                              .recompute_actions = has(operations, Op::kRecompute)};
  const bool evicts = has(operations, Op::kEvict);  // BPipe's schedules
  const std::optional<StackSpec>& stack = pricing.training().stack;
  const Pricing::Placements& groups = pricing.placements(layout);

  Partition partition = partition_of(layout, pricing, pricing.layer_prices(layout, groups.inner[0]), schedule);
  const GraphTables* graph = pricing.graph();
  PricedLayout priced{.layers = graph != nullptr ? runnable_layers_by_part(*graph, partition.split)
                                                 : layers_by_part(pricing.layers(), partition.split),
                      .split = std::move(partition.split),
                      .notes = std::move(partition.notes)};
  const std::vector<std::vector<int>> kinds_of_part = kinds_in_order(pricing, priced.split);
  const std::vector<std::vector<int>> counts = kind_counts(pricing, kinds_of_part);

  const LayerWork work = work_of(pricing.training(), layout);
  const bool in_buckets = reduces_in_buckets(layout, schedule);
  const auto last_part = static_cast<int>(priced.layers.size()) - 1;
  int first_rank = 0, last_rank = 0;
  std::vector<int> copies_of_part(priced.layers.size(), 0);
  for (const StagePlace& stage : schedule.stages) {
    ++copies_of_part[stage.model_part];
    if (stage.model_part == 0) first_rank = stage.rank;
    if (stage.model_part == last_part) last_rank = stage.rank;
  }

  const auto alike = [&](const StagePlace& one, const StagePlace& other) {
    const auto inner = [&](int part) { return part > 0 && part < last_part; };
    return graph == nullptr && inner(one.model_part) && inner(other.model_part) &&
           kinds_of_part[one.model_part] == kinds_of_part[other.model_part] &&
           copies_of_part[one.model_part] == copies_of_part[other.model_part] &&
           groups.inner[one.rank] == groups.inner[other.rank] && groups.data[one.rank] == groups.data[other.rank] &&
           groups.expert_data[one.rank] == groups.expert_data[other.rank];
  };

  const std::int64_t element_bytes = bytes_per_element(pricing.training().precision);
  priced.costs.stages.reserve(schedule.stages.size());
  for (std::size_t index = 0; index < schedule.stages.size(); ++index) {
    const StagePlace& stage = schedule.stages[index];
    const auto before = schedule.stages.begin() + static_cast<std::ptrdiff_t>(index);
    const auto twin =
        std::find_if(schedule.stages.begin(), before, [&](const StagePlace& other) { return alike(stage, other); });
    if (twin != before) {
      const auto at = static_cast<std::size_t>(twin - schedule.stages.begin());
      priced.costs.stages.push_back(priced.costs.stages[at]);
      if (in_buckets) priced.buckets.push_back(priced.buckets[at]);
      if (layout.offload.optimizer) priced.host_optimizer_bytes.push_back(priced.host_optimizer_bytes[at]);
      continue;
    }
    const int copies = copies_of_part[stage.model_part];
    const std::vector<Pricing::LayerState>& states = pricing.layer_states(layout, copies);
    const std::vector<int>& kinds = counts[stage.model_part];
    StageCosts& costs = priced.costs.stages.emplace_back();
    const StagePasses passes =
        stage_passes(kinds, pricing.layer_prices(layout, groups.inner[stage.rank]), layout.recompute, backward);
    price_compute(costs, passes, stack ? stack->action_overhead : Seconds{0});

    Replicated held{.group = groups.data[stage.rank], .expert_group = groups.expert_data[stage.rank]};
    Seconds optimizer{0};
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      if (kinds[kind] == 0) continue;
      held.parameters += kinds[kind] * states[kind].parameters;
      held.expert_parameters += kinds[kind] * states[kind].expert_parameters;
      held.largest_layer = std::max(held.largest_layer, states[kind].parameters + states[kind].expert_parameters);
      optimizer += kinds[kind] * states[kind].optimizer;
    }
    std::vector<GradientBucket> buckets;
    if (in_buckets) {
      const std::vector<LayerPrice>& prices = pricing.layer_prices(layout, groups.inner[stage.rank]);
      std::vector<LayerGradient> gradients;
      for (const int kind : kinds_of_part[stage.model_part]) {
        gradients.push_back({.parameters = states[kind].parameters,
                             .expert_parameters = states[kind].expert_parameters,
                             .backward = last_backward(prices[kind], layout.recompute, backward)});
      }
      const Op host = backward.split ? Op::kWeightGrad : Op::kBackward;
      buckets =
          gradient_buckets(gradients, bucket_parameters(pricing.training(), layout), segment_seconds(costs, host));
      priced.buckets.push_back(static_cast<int>(buckets.size()));
    }
    DataParallelPrice replicas_price =
        data_parallel_price(pricing, layout, held, total(passes.forward), total(passes.backward), buckets);
    costs.segments[static_cast<std::size_t>(Op::kReduceGrad)] = std::move(replicas_price.reduce_grad);
    costs.segments[static_cast<std::size_t>(Op::kUnshard)] = std::move(replicas_price.unshard);
    costs.bucket_offsets = std::move(replicas_price.bucket_offsets);

    std::vector<Segment> step;
    if (graph != nullptr)
      step = graph_tied_reduction(pricing, grid, schedule, priced.split, stage.model_part);
    else if (stage.model_part == 0 || stage.model_part == last_part)
      step = tied_reduction(pricing, grid, first_rank, last_rank);
    if (layout.offload.optimizer) {
      const auto shard = [&](std::int64_t parameters, int over) {
        return layout.zero >= 1 ? (parameters + over - 1) / over : parameters;
      };
      const std::int64_t updated = shard(held.parameters, layout.data * layout.context * copies) +
                                   shard(held.expert_parameters, expert_grid_of(layout).data * copies);
      optimizer = offloaded_step(pricing.cluster(), pricing.training(), updated, total(passes.backward));
    }
    step.push_back({.kind = Segment::Kind::kCompute, .seconds = optimizer});
    costs.segments[static_cast<std::size_t>(Op::kOptimizerStep)] = whole(std::move(step));

    costs.memory =
        stack ? framework_memory(priced.layers[stage.model_part], pricing.training(), *stack, layout, backward, copies)
              : stage_memory(graph != nullptr
                                 ? graph_footprints_of_part(pricing, layout, priced.split, stage.model_part)
                                 : of_kinds(pricing.layer_footprints(layout), kinds_of_part[stage.model_part]),
                             pricing.training(), layout, backward, copies);
    if (layout.offload.optimizer) {
      priced.host_optimizer_bytes.push_back(std::exchange(costs.memory.optimizer_bytes, 0));
    }
    const auto price_moves = [&](Op away, Op back, Seconds moved) {
      for (const Op op : {away, back})
        costs.segments[static_cast<std::size_t>(op)] = whole({{.kind = Segment::Kind::kCompute, .seconds = moved}});
    };
    if (layout.offload.activations)
      price_moves(Op::kOffload, Op::kReload, host_move_time(pricing.cluster(), costs.memory.forward_bytes));
    if (const int partner = layout.pipeline - 1 - stage.rank; evicts && partner != stage.rank) {
      const LinkCost link =
          pipeline_link(pricing.collectives(), grid, stage.rank, partner, pricing.cluster().devices_per_node);
      price_moves(Op::kEvict, Op::kLoad,
                  link.latency + Seconds{static_cast<double>(costs.memory.forward_bytes) / link.bytes_per_second});
    }
    if (graph != nullptr) {
      std::tie(costs.activation_message_bytes, costs.gradient_message_bytes) =
          graph_message_bytes(*graph, priced.split, stage.model_part, layout.microbatch * element_bytes);
      continue;
    }
    // Both messages have the size of a residual stream: this stage's output, and the gradient of its input.
    const std::int64_t stream = output_elements(pricing.layers().front(), work) / layout.context * element_bytes;
    const bool scattered = stack && stack->scattered_messages && !layout.sequence_parallel;
    costs.activation_message_bytes = costs.gradient_message_bytes = scattered ? stream / layout.tensor : stream;
  }
  price_links(priced.costs, pricing, grid, schedule);
  return priced;
}

}  // namespace plumb
