#include "planner/cost/cost_table.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "planner/cost/gradient_buckets.h"
#include "planner/cost/partition.h"
#include "planner/cost/stage_memory.h"
#include "schedules/error.h"

namespace plumb {
namespace {

constexpr std::int64_t kBytesPerMib = 1 << 20;

enum LayerIndex : std::size_t { kEmbeddingIndex, kTransformerIndex, kHeadIndex };

BackwardForm backward_form(const Schedule& schedule) {
  BackwardForm form;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      form.split = form.split || action.op == Op::kInputGrad;
      form.recompute_actions = form.recompute_actions || action.op == Op::kRecompute;
    }
  }
  return form;
}

PassPrice rebuild_price(const LayerPrice& price, Recompute recompute) {
  if (recompute == Recompute::kFull) return price.rebuild_full;
  return recompute == Recompute::kSelective ? price.rebuild_selective : PassPrice{};
}

Seconds steady_cost(const LayerPrice& price, Recompute recompute) {
  return total(price.forward) + total(rebuild_price(price, recompute)) + total(price.input_grad) +
         total(price.weight_grad);
}

int part_count(const Schedule& schedule) {
  int parts = 0;
  for (const StagePlace& stage : schedule.stages) parts = std::max(parts, stage.model_part + 1);
  return parts;
}

Partition partition_of(const Layout& layout, const ModelSpec& model, const std::vector<LayerPrice>& prices,
                       const Schedule& schedule) {
  const int parts = part_count(schedule);
  if (!layout.split.empty()) {
    if (static_cast<int>(layout.split.size()) != parts) {
      throw SpecError(fmt::format("split names {} stages, but the layout has {}: give one number of layers for each",
                                  layout.split.size(), parts));
    }
    return {.split = layout.split};
  }
  if (model.layers < parts) {
    throw SpecError(
        fmt::format("{} stages cannot share {} layers: use fewer pipeline ranks or chunks", parts, model.layers));
  }
  return balanced_partition(static_cast<int>(model.layers),
                            {.embedding = steady_cost(prices[kEmbeddingIndex], layout.recompute),
                             .transformer = steady_cost(prices[kTransformerIndex], layout.recompute),
                             .head = steady_cost(prices[kHeadIndex], layout.recompute)},
                            schedule.stages);
}

SegmentsByPart whole(std::vector<Segment> segments) {
  return {std::move(segments)};
}

Segment collective_segment(Group group, CollectiveKind kind, Seconds seconds, std::int64_t bytes) {
  return {.kind = Segment::Kind::kCollective, .seconds = seconds, .group = group, .collective = kind, .bytes = bytes};
}

void price_compute(StageCosts& costs, const std::vector<Layer>& layers, const std::vector<LayerPrice>& prices,
                   Recompute recompute, BackwardForm backward) {
  PassPrice forward, rebuild, input_grad, weight_grad;
  for (const Layer& layer : layers) {
    const LayerPrice& price = prices[layer.index()];
    forward += price.forward;
    rebuild += rebuild_price(price, recompute);
    input_grad += price.input_grad;
    weight_grad += price.weight_grad;
  }
  if (!backward.recompute_actions) input_grad += rebuild;
  PassPrice whole_backward = input_grad;
  whole_backward += weight_grad;
  costs.segments[static_cast<std::size_t>(Op::kForward)] = whole(segments_for(forward));
  costs.segments[static_cast<std::size_t>(Op::kRecompute)] = whole(segments_for(rebuild));
  costs.segments[static_cast<std::size_t>(Op::kInputGrad)] = whole(segments_for(input_grad));
  costs.segments[static_cast<std::size_t>(Op::kWeightGrad)] = whole(segments_for(weight_grad));
  costs.segments[static_cast<std::size_t>(Op::kBackward)] = whole(segments_for(whole_backward));
}

/// Its layers' parameters and their shares of the stage's last B, or of its last W where backwards are split.
std::vector<LayerGradient> layer_gradients(const std::vector<Layer>& layers, const std::vector<LayerPrice>& prices,
                                           const Layout& layout, BackwardForm backward) {
  std::vector<LayerGradient> gradients;
  for (const Layer& layer : layers) {
    const LayerPrice& price = prices[layer.index()];
    Seconds seconds = total(price.weight_grad);
    if (!backward.split) seconds += total(price.input_grad);
    if (!backward.split && !backward.recompute_actions) seconds += total(rebuild_price(price, layout.recompute));
    gradients.push_back({.parameters = parameter_count(layer, layout.tensor), .backward = seconds});
  }
  return gradients;
}

/// Reductions by bucket; without buckets of the whole.
void price_data_parallel(StageCosts& costs, const Pricing& pricing, const Layout& layout,
                         const GroupPlacement& data_group, std::int64_t parameters, const GradientBuckets& buckets) {
  if (layout.data == 1) return;
  const std::int64_t weight_bytes = parameters * bytes_per_element(pricing.training().precision);
  const CollectiveKind reduction = layout.zero == 0 ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter;
  const std::int64_t gradient_bytes = bytes_per_element(pricing.training().gradient_precision);
  for (const std::int64_t bucket : buckets.parameters.empty() ? std::vector{parameters} : buckets.parameters) {
    const std::int64_t bytes = bucket * gradient_bytes;
    costs.segments[static_cast<std::size_t>(Op::kReduceGrad)].push_back({collective_segment(
        Group::kData, reduction, collective_time(pricing.collectives(), data_group, reduction, bytes), bytes)});
  }
  costs.bucket_offsets = buckets.offsets;
  if (layout.zero == 0) return;
  const auto gather = CollectiveKind::kAllGather;
  costs.segments[static_cast<std::size_t>(Op::kUnshard)] = whole({collective_segment(
      Group::kData, gather, collective_time(pricing.collectives(), data_group, gather, weight_bytes), weight_bytes)});
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
  const StageNeighbors neighbors = stage_neighbors(schedule);
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    const int next = neighbors.successor[stage];
    if (next < 0) continue;
    const int from = schedule.stages[stage].rank;
    const int to = schedule.stages[next].rank;
    if (from == to) continue;
    for (const auto& [source, destination] : {std::pair(from, to), std::pair(to, from)}) {
      costs.links[{source, destination}] =
          pipeline_link(pricing.collectives(), grid, source, destination, pricing.cluster().devices_per_node);
    }
  }
}

}  // namespace

Pricing::Pricing(const ModelSpec& model, const ClusterSpec& cluster, const TrainingSpec& training)
    : model_(model),
      cluster_(cluster),
      training_(training),
      layers_(model_layers(model)),
      kernels_(kernel_prices(cluster, training, std::min(cluster.devices, cluster.devices_per_node))),
      collectives_(collective_prices(cluster, std::min(cluster.devices, cluster.devices_per_node))) {
  if (model.positions > 0 && training.sequence > model.positions) {
    throw SpecError(
        fmt::format("{} has {} positions, and a sequence of {} tokens needs as many: give sequences of {} or fewer",
                    model.name, model.positions, training.sequence, model.positions));
  }
}

const Pricing::Placements& Pricing::placements(const ProcessGrid& grid) {
  const auto [it, added] = placements_.try_emplace({grid.tensor, grid.data, grid.pipeline});
  if (!added) return it->second;
  for (int rank = 0; rank < grid.pipeline; ++rank) {
    it->second.tensor.push_back(worst_placement(grid, Group::kTensor, rank, cluster_.devices_per_node));
    it->second.data.push_back(worst_placement(grid, Group::kData, rank, cluster_.devices_per_node));
  }
  return it->second;
}

const std::vector<LayerPrice>& Pricing::layer_prices(const Layout& layout, const GroupPlacement& tensor_group) {
  const auto key = std::tuple(layout.tensor, layout.sequence_parallel, layout.microbatch, tensor_group.nodes,
                              tensor_group.ranks_per_node);
  const auto known = layer_prices_.find(key);
  if (known != layer_prices_.end()) return known->second;
  const LayerWork work = work_of(training_, layout);
  std::vector<LayerPrice> prices;
  for (const Layer& layer : {layers_.front(), layers_[1], layers_.back()}) {
    prices.push_back(layer_price(kernels_, collectives_, tensor_group, layer, work));
  }
  return layer_prices_.emplace(key, std::move(prices)).first->second;
}

PricedLayout price_layout(Pricing& pricing, const Layout& layout, const Schedule& schedule) {
  const ProcessGrid grid = grid_of(layout);
  const BackwardForm backward = backward_form(schedule);

  const Pricing::Placements& groups = pricing.placements(grid);

  Partition partition = partition_of(layout, pricing.model(), pricing.layer_prices(layout, groups.tensor[0]), schedule);
  PricedLayout priced{.layers = layers_by_part(pricing.layers(), partition.split),
                      .split = std::move(partition.split),
                      .notes = std::move(partition.notes)};

  std::array<Seconds, 3> optimizer_times{};  // by Layer::index()
  for (const Layer& layer : {pricing.layers().front(), pricing.layers()[1], pricing.layers().back()}) {
    optimizer_times[layer.index()] =
        optimizer_time(pricing.kernels(), layer, layout.tensor, layout.zero >= 1 ? layout.data : 1);
  }

  const auto last_part = static_cast<int>(priced.layers.size()) - 1;
  int first_rank = 0, last_rank = 0;
  for (const StagePlace& stage : schedule.stages) {
    if (stage.model_part == 0) first_rank = stage.rank;
    if (stage.model_part == last_part) last_rank = stage.rank;
  }

  const std::vector<bool> copied = stages_with_copies(schedule);
  const bool in_buckets =
      layout.data > 1 && layout.bucket_mib > 0 && layout.zero <= 1 && std::ranges::find(copied, true) == copied.end();
  const std::int64_t bucket_parameters = std::max<std::int64_t>(
      1, layout.bucket_mib * kBytesPerMib / bytes_per_element(pricing.training().gradient_precision));

  const LayerWork work = work_of(pricing.training(), layout);
  const std::int64_t element_bytes = bytes_per_element(pricing.training().precision);
  for (const StagePlace& stage : schedule.stages) {
    const std::vector<Layer>& layers = priced.layers[stage.model_part];
    StageCosts& costs = priced.costs.stages.emplace_back();
    price_compute(costs, layers, pricing.layer_prices(layout, groups.tensor[stage.rank]), layout.recompute, backward);

    std::int64_t parameters = 0;
    Seconds optimizer{0};
    for (const Layer& layer : layers) {
      parameters += parameter_count(layer, layout.tensor);
      optimizer += optimizer_times[layer.index()];
    }
    GradientBuckets buckets;
    if (in_buckets) {
      buckets = gradient_buckets(
          layer_gradients(layers, pricing.layer_prices(layout, groups.tensor[stage.rank]), layout, backward),
          bucket_parameters);
      priced.buckets.push_back(static_cast<int>(buckets.parameters.size()));
    }
    price_data_parallel(costs, pricing, layout, groups.data[stage.rank], parameters, buckets);

    std::vector<Segment> step;
    if (stage.model_part == 0 || stage.model_part == last_part)
      step = tied_reduction(pricing, grid, first_rank, last_rank);
    step.push_back({.kind = Segment::Kind::kCompute, .seconds = optimizer});
    costs.segments[static_cast<std::size_t>(Op::kOptimizerStep)] = whole(std::move(step));

    costs.memory = stage_memory(layers, pricing.training(), layout, backward);
    // Both messages have the size of a residual stream: this stage's output, and the gradient of its input.
    costs.activation_message_bytes = costs.gradient_message_bytes =
        output_elements(pricing.layers().front(), work) * element_bytes;
  }
  price_links(priced.costs, pricing, grid, schedule);
  return priced;
}

}  // namespace plumb
