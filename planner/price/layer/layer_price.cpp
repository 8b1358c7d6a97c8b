#include "planner/price/layer/layer_price.h"

#include <algorithm>
#include <cmath>

#include "planner/price/framework/kernel_time.h"
#include "planner/price/framework/transformer_ops.h"
#include "planner/price/framework/vocabulary_ops.h"
#include "planner/price/memory/stage_memory.h"

namespace plumb { inline namespace planner {
namespace {

const GroupPlacement& placement_in(const InnerGroups& groups, Group group) {
  if (group == Group::kContext) return groups.context;
  return group == Group::kExpert ? groups.expert : groups.tensor;
}

/// Returns the bytes that are on the wire in the part of a collective's time that blocks.
std::int64_t shown_bytes(std::int64_t bytes, double shown) {
  return shown == 1 ? bytes : static_cast<std::int64_t>(shown * static_cast<double>(bytes));
}

/// Returns the share of a token's copies that are the first for one of `parts` equal parts of the experts: the expected
/// number of parts that hold one of `picks` different ones among `experts`, over picks.
double first_copies(int experts, int picks, int parts) {
  double missed = 1;
  for (int i = 0; i < picks; ++i) {
    const double others = experts - static_cast<double>(experts) / parts - i;
    missed *= std::max(0.0, others / std::max(1, experts - i));
  }
  return parts * (1 - missed) / std::max(1, picks);
}

/// Returns the time of the tokens to their experts and back. A token travels once for each rank; over the network once
/// for each node, inside which it is handed on.
Seconds tokens_time(const CollectivePrices& prices, const GroupPlacement& placement, const KernelExchange& exchange) {
  const auto bytes = static_cast<double>(exchange.bytes);
  const auto time = [&prices](const GroupPlacement& where, double buffer) {
    return collective_time(prices, where, CollectiveKind::kAllToAll, static_cast<std::int64_t>(buffer));
  };
  const double to_ranks = bytes * first_copies(exchange.experts, exchange.picks, placement.ranks);
  if (placement.nodes == 1 || placement.ranks_per_node == 1) return time(placement, to_ranks);
  const double to_nodes = bytes * first_copies(exchange.experts, exchange.picks, placement.nodes);
  return std::max(time({.ranks = placement.ranks, .nodes = 1, .ranks_per_node = placement.ranks}, to_ranks),
                  time(placement, to_nodes));
}

/// Adds collectives of a layer's groups to passes.
class Exchanges {
 public:
  Exchanges(const CollectivePrices& prices, const InnerGroups& groups) : prices_(prices), groups_(groups) {}

  void add(PassPrice& pass, const KernelExchange& exchange, double shown = 1, Seconds fixed = Seconds{0},
           double rate = 1) const {
    const GroupPlacement& placement = placement_in(groups_, exchange.group);
    if (placement.ranks == 1) return;
    const auto group = static_cast<std::size_t>(exchange.group);
    const auto kind = static_cast<std::size_t>(exchange.kind);
    const Seconds moved = exchange.experts > 0 ? tokens_time(prices_, placement, exchange)
                                               : collective_time(prices_, placement, exchange.kind, exchange.bytes);
    const Seconds once = moved / rate + fixed;
    pass.collective_seconds[group][kind] += exchange.count * shown * once;
    pass.collective_bytes[group][kind] += shown_bytes(exchange.count * exchange.bytes, shown);
  }

 private:
  const CollectivePrices& prices_;
  const InnerGroups& groups_;
};

/// Returns the parameters of a norm for each channel: a gain, or a gain and a bias.
int norm_parameters(NormKind norm) {
  return norm == NormKind::kLayerNorm ? 2 : 1;
}

void add_own_collectives(LayerPrice& price, const Exchanges& groups, const Layer& layer, const LayerWork& work,
                         std::int64_t element_bytes) {
  using enum CollectiveKind;
  constexpr std::int64_t kSinglePrecision = 4;
  const std::int64_t tokens = work.microbatch * work.sequence;
  const bool sequence_parallel = work.sequence_parallel;
  const auto add = [&groups](PassPrice& pass, CollectiveKind kind, int count, std::int64_t bytes) {
    groups.add(pass, {Group::kTensor, kind, bytes, count});
  };
  if (const auto* block = std::get_if<TransformerLayer>(&layer)) {
    const std::int64_t bytes = tokens * block->hidden * element_bytes;
    for (PassPrice* pass : {&price.forward, &price.input_grad}) {
      if (sequence_parallel) {
        add(*pass, kAllGather, 2, bytes);
        add(*pass, kReduceScatter, 2, bytes);
      } else {
        add(*pass, kAllReduce, 2, bytes);
      }
    }
    // Gradients of the two row-parallel outputs, inputs of the two column-parallel products.
    if (sequence_parallel) {
      add(price.weight_grad, kAllGather, 4, bytes);
      add(price.input_grad, kAllReduce, 2, norm_parameters(block->norm) * block->hidden * kSinglePrecision);
      if (block->linear_bias) add(price.weight_grad, kAllReduce, 2, block->hidden * kSinglePrecision);
    }
  } else if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer)) {
    const std::int64_t bytes = tokens * embedding->hidden * element_bytes;
    add(price.forward, sequence_parallel ? kReduceScatter : kAllReduce, 1, bytes);
    if (sequence_parallel) add(price.weight_grad, kAllGather, 1, bytes);
  } else if (const auto* head = std::get_if<HeadLayer>(&layer)) {
    const std::int64_t bytes = tokens * head->hidden * element_bytes;
    add(price.forward, kAllGather, 1, 3 * work.tensor_parallel * tokens * kSinglePrecision);
    add(price.input_grad, sequence_parallel ? kReduceScatter : kAllReduce, 1, bytes);
    if (sequence_parallel) {
      add(price.forward, kAllGather, 1, bytes);
      add(price.weight_grad, kAllGather, 1, bytes);
      add(price.input_grad, kAllReduce, 1, norm_parameters(head->norm) * head->hidden * kSinglePrecision);
    }
  }
}

/// Attention of a context rank has its share of the pairs of query and key of whole sequences (zigzag); the other
/// kernels work on its tokens alone.
Seconds own_kernel_time(const KernelPrices& kernels, const KernelCall& call, const LayerWork& work) {
  if (call.kind != KernelKind::kAttentionForward && call.kind != KernelKind::kAttentionBackward)
    return kernel_time(kernels, call);
  std::vector<std::int64_t> shape = call.shape;
  shape[1] = work.sequence;
  return kernel_time(kernels, kernel_call(call.kind, std::move(shape))) / work.context_parallel;
}

/// Adds a ring of keys and values. It moves them like an all-gather, and in the backward also their gradients, like a
/// reduce-scatter.
void add_ring(LayerPrice& price, const Exchanges& groups, const TransformerLayer& block, const LayerWork& work,
              std::int64_t element_bytes) {
  const std::int64_t bytes =
      work.microbatch * work.sequence * 2 * block.kv_heads / work.tensor_parallel * block.head_size * element_bytes;
  groups.add(price.forward, {Group::kContext, CollectiveKind::kAllGather, bytes, 1});
  groups.add(price.input_grad, {Group::kContext, CollectiveKind::kAllGather, bytes, 1});
  groups.add(price.input_grad, {Group::kContext, CollectiveKind::kReduceScatter, bytes, 1});
}

/// Adds the exchanges of picks with their experts and back, in the backward also the weights of the picks and their
/// gradients.
void add_expert_exchanges(LayerPrice& price, const Exchanges& groups, const TransformerLayer& block,
                          const LayerWork& work, std::int64_t element_bytes) {
  if (block.experts == 0) return;
  constexpr std::int64_t kSinglePrecision = 4;
  const std::int64_t picks = work.microbatch * work.sequence * block.experts_per_token;
  const std::int64_t rows = picks * block.hidden * element_bytes;
  const auto add = [&](PassPrice& pass, std::int64_t bytes, int count) {
    groups.add(pass, {Group::kExpert, CollectiveKind::kAllToAll, bytes, count});
  };
  add(price.forward, block.experts * kSinglePrecision, 1);  // number of picks for each expert
  add(price.forward, rows, 2);
  add(price.input_grad, rows, 2);
  add(price.input_grad, picks * kSinglePrecision, 2);
  groups.add(price.input_grad, {Group::kTensor, CollectiveKind::kAllReduce, picks * kSinglePrecision, 1});
  const std::int64_t whole_picks = picks * work.context_parallel;
  groups.add(price.forward, {Group::kContext, CollectiveKind::kAllGather, whole_picks * kSinglePrecision, 1});
}

LayerPrice own_price(const KernelPrices& kernels, const Exchanges& groups, const Layer& layer,
                     const LayerWork& whole_work, bool rebuilds_cheap) {
  const LayerWork work = context_share(whole_work);
  LayerPrice price;
  const LayerKernels lists = kernels.fused ? fused_kernels(layer, work, rebuilds_cheap) : plain_kernels(layer, work);
  const auto add = [&](PassPrice& pass, const std::vector<KernelCall>& calls) {
    for (const KernelCall& call : calls) pass.compute += own_kernel_time(kernels, call, whole_work);
  };
  add(price.forward, lists.forward);
  add(price.input_grad, lists.input_grad);
  add(price.weight_grad, lists.weight_grad);
  add(price.rebuild_selective, lists.rebuild_selective);
  add_own_collectives(price, groups, layer, work, kernels.element_bytes);
  const auto* block = std::get_if<TransformerLayer>(&layer);
  if (block != nullptr) {
    add_ring(price, groups, *block, whole_work, kernels.element_bytes);
    LayerWork own = work;
    own.context_parallel = whole_work.context_parallel;
    add_expert_exchanges(price, groups, *block, own, kernels.element_bytes);
  }
  if (kernels.fused || block != nullptr) price.rebuild_full = price.forward;
  return price;
}

LayerOps ops_of(const KernelPrices& kernels, const Layer& layer, const LayerWork& work, const StackSpec& stack) {
  const bool narrow = kernels.quantized && stack.fp8_gathers;
  const ElementBytes bytes{.activation = static_cast<double>(kernels.element_bytes),
                           .gathered = narrow ? 1 : static_cast<double>(kernels.element_bytes),
                           .gradient = static_cast<double>(kernels.gradient_bytes),
                           .cast = kernels.quantized ? stack.fp8_cast_bytes : 0};
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer)) return embedding_ops(*embedding, work, stack, bytes);
  if (const auto* head = std::get_if<HeadLayer>(&layer)) return head_ops(*head, work, stack, bytes);
  return transformer_ops(std::get<TransformerLayer>(layer), work, stack, bytes);
}

/// Returns the share of a group's traffic that blocks the pass.
double shown_share(const StackSpec& stack, Group group) {
  if (group == Group::kTensor) return 1 - stack.tensor_hidden;
  return group == Group::kExpert ? 1 - stack.expert_hidden : 1;
}

/// Returns true if the host launches the kernel by itself.
bool launched(const StackSpec& stack, bool routed) {
  return stack.graphs == GraphScope::kNone || (stack.graphs == GraphScope::kOutsideExperts && routed);
}

PassPrice pass_price(const KernelPrices& kernels, const Exchanges& groups, const PassOps& pass, const StackSpec& stack,
                     int tensor_ranks) {
  PassPrice price{.host_sharpness = stack.host_sharpness};
  Seconds attention{0};
  for (const DeviceKernel& kernel : pass.kernels) {
    const Seconds time = device_kernel_time(kernels, stack, kernel);
    price.compute += time;
    if (launched(stack, kernel.routed)) price.host += kernel.launches * stack.kernel_launch;
    if (kernel.kind != DeviceKernel::Kind::kTraffic && kernel.kind != DeviceKernel::Kind::kGemm) attention += time;
  }
  for (const KernelExchange& exchange : pass.exchanges) {
    const bool expert = exchange.group == Group::kExpert;
    groups.add(price, exchange, shown_share(stack, exchange.group), fixed_time(stack, exchange, tensor_ranks),
               expert ? stack.dispatch_share : 1);
    if (launched(stack, expert)) price.host += exchange.count * stack.kernel_launch;
  }
  // Blocks of keys and values travel beside the attention of the last blocks.
  if (stack.context == ContextKind::kRing) {
    const auto group = static_cast<std::size_t>(Group::kContext);
    for (std::size_t kind = 0; kind < kPricedCollectiveCount; ++kind) {
      Seconds& time = price.collective_seconds[group][kind];
      const Seconds hidden = std::min(time, attention);
      if (!(hidden.count() > 0)) continue;
      std::int64_t& bytes = price.collective_bytes[group][kind];
      bytes = shown_bytes(bytes, 1 - hidden / time);
      time -= hidden;
      attention -= hidden;
    }
  }
  return price;
}

/// Returns the time of the products of that name.
Seconds product_time(const KernelPrices& kernels, const StackSpec& stack, const PassOps& pass, std::string_view name) {
  Seconds time{0};
  for (const DeviceKernel& kernel : pass.kernels) {
    const bool product = kernel.kind == DeviceKernel::Kind::kGemm && !kernel.batched && kernel.name == name;
    if (product) time += device_kernel_time(kernels, stack, kernel);
  }
  return time;
}

/// Returns one layer's matrices that are divided by columns, whose input gradients are summed over the tensor group.
std::vector<std::string_view> column_products(const Layer& layer) {
  if (std::holds_alternative<HeadLayer>(layer)) return {"logits"};
  const auto* block = std::get_if<TransformerLayer>(&layer);
  if (block == nullptr || block->kv_rank > 0) return {};
  return block->experts > 0 ? std::vector<std::string_view>{"qkv"} : std::vector<std::string_view>{"qkv", "up"};
}

/// Returns LayerPrice::hidden.
PassPrice::ByKind hidden_beside_products(const KernelPrices& kernels, const LayerPrice& price, const LayerOps& ops,
                                         const Layer& layer, const StackSpec& stack) {
  PassPrice::ByKind hidden{};
  if (!stack.async_tensor_gradients) return hidden;
  const auto tensor = static_cast<std::size_t>(Group::kTensor);
  const auto each = [tensor](const PassPrice& pass, const PassOps& of, CollectiveKind kind) {
    int count = 0;
    for (const KernelExchange& exchange : of.exchanges) {
      if (exchange.group == Group::kTensor && exchange.kind == kind) count += exchange.count;
    }
    return count == 0 ? Seconds{0} : pass.collective_seconds[tensor][static_cast<std::size_t>(kind)] / count;
  };
  using enum CollectiveKind;
  for (const std::string_view name : column_products(layer)) {
    const Seconds weights = product_time(kernels, stack, ops.weight_grad, name);
    const Seconds inputs = product_time(kernels, stack, ops.input_grad, name);
    for (const CollectiveKind kind : {kAllReduce, kReduceScatter}) {
      hidden[static_cast<std::size_t>(kind)] += std::min(weights, each(price.input_grad, ops.input_grad, kind));
    }
    hidden[static_cast<std::size_t>(kAllGather)] +=
        std::min(inputs, each(price.weight_grad, ops.weight_grad, kAllGather));
  }
  return hidden;
}

Seconds device_time(const PassPrice& price) {
  Seconds sum = price.compute;
  for (const PassPrice::ByKind& kinds : price.collective_seconds) {
    for (const Seconds seconds : kinds) sum += seconds;
  }
  return sum;
}

LayerPrice framework_price(const KernelPrices& kernels, const Exchanges& groups, const Layer& layer,
                           const LayerWork& work, const StackSpec& stack) {
  const LayerOps ops = ops_of(kernels, layer, work, stack);
  const auto price = [&](const PassOps& of) { return pass_price(kernels, groups, of, stack, work.tensor_parallel); };
  LayerPrice result{.forward = price(ops.forward),
                    .input_grad = price(ops.input_grad),
                    .weight_grad = price(ops.weight_grad),
                    .rebuild_selective = price(ops.rebuild_selective),
                    .rebuild_full = price(ops.rebuild_full)};
  if (const auto* block = std::get_if<TransformerLayer>(&layer)) {
    // A framework's Python launches kernels besides those listed: views that copy, casts, statistics, zeroing.
    const int all = launched(stack, false) ? 1 : 0;
    const int experts = block->experts > 0 && launched(stack, true) ? stack.expert_launches : 0;
    const int forward = all * stack.layer_launches_forward + experts;
    result.forward.host += forward * stack.kernel_launch;
    result.rebuild_full.host += forward * stack.kernel_launch;
    result.input_grad.host += (all * stack.layer_launches_backward + experts) * stack.kernel_launch;
  } else if (stack.waits_at_ends) {  // the host does not get ahead of the device
    for (PassPrice* pass : {&result.forward, &result.input_grad, &result.weight_grad}) {
      pass->host = std::max(pass->host, device_time(*pass));
    }
  }
  result.hidden = hidden_beside_products(kernels, result, ops, layer, stack);
  return result;
}

}  // namespace

PassPrice& PassPrice::operator+=(const PassPrice& other) {
  compute += other.compute;
  host_sharpness = std::max(host_sharpness, other.host_sharpness);
  host += other.host;
  for (std::size_t group = 0; group < kInnerGroupCount; ++group) {
    for (std::size_t kind = 0; kind < kPricedCollectiveCount; ++kind) {
      collective_seconds[group][kind] += other.collective_seconds[group][kind];
      collective_bytes[group][kind] += other.collective_bytes[group][kind];
    }
  }
  return *this;
}

PassPrice whole_backward(const LayerPrice& price) {
  PassPrice whole = price.input_grad;
  whole += price.weight_grad;
  const auto tensor = static_cast<std::size_t>(Group::kTensor);
  for (std::size_t kind = 0; kind < kPricedCollectiveCount; ++kind) {
    if (!(price.hidden[kind].count() > 0)) continue;
    Seconds& time = whole.collective_seconds[tensor][kind];
    std::int64_t& bytes = whole.collective_bytes[tensor][kind];
    const Seconds hidden = std::min(time, price.hidden[kind]);
    bytes = shown_bytes(bytes, 1 - hidden / time);
    time -= hidden;
  }
  return whole;
}

Seconds total(const PassPrice& price) {
  const Seconds sum = device_time(price);
  if (price.host_sharpness == 0 || price.host.count() == 0) return std::max(sum, price.host);
  const double p = price.host_sharpness;
  const Seconds larger = std::max(sum, price.host);
  return larger * std::pow(1 + std::pow(std::min(sum, price.host) / larger, p), 1 / p);
}

std::vector<Segment> segments_for(const PassPrice& price) {
  Seconds exchanged{0};
  for (const PassPrice::ByKind& kinds : price.collective_seconds) {
    for (const Seconds seconds : kinds) exchanged += seconds;
  }
  const Seconds compute = total(price) - exchanged;
  std::size_t count = 1;
  for (const PassPrice::ByKind& kinds : price.collective_seconds)
    count += std::ranges::count_if(kinds, [](Seconds seconds) { return seconds.count() > 0; });
  std::vector<Segment> segments;
  segments.reserve(count);
  if (compute.count() > 0) segments.push_back({.kind = Segment::Kind::kCompute, .seconds = compute});
  for (std::size_t group = 0; group < kInnerGroupCount; ++group) {
    for (std::size_t kind = 0; kind < kPricedCollectiveCount; ++kind) {
      if (!(price.collective_seconds[group][kind].count() > 0)) continue;
      segments.push_back({.kind = Segment::Kind::kCollective,
                          .seconds = price.collective_seconds[group][kind],
                          .group = static_cast<Group>(group),
                          .collective = static_cast<CollectiveKind>(kind),
                          .bytes = price.collective_bytes[group][kind]});
    }
  }
  return segments;
}

LayerPrice layer_price(const KernelPrices& kernels, const CollectivePrices& collectives, const InnerGroups& groups,
                       const Layer& layer, const LayerWork& work, const std::optional<StackSpec>& stack,
                       bool rebuilds_cheap) {
  const Exchanges exchanges(collectives, groups);
  return stack ? framework_price(kernels, exchanges, layer, work, *stack)
               : own_price(kernels, exchanges, layer, work, rebuilds_cheap);
}

Seconds optimizer_time(const KernelPrices& kernels, const Layer& layer, const LayerWork& work, int shards,
                       int expert_shards) {
  Seconds time{0};
  for (const ParameterTensor& tensor : layer_parameters(layer, work.tensor_parallel, work.experts)) {
    const int divided = tensor.expert ? expert_shards : shards;
    const std::int64_t elements = (element_count(tensor) + divided - 1) / divided;
    time += kernel_time(kernels, update_call(kernels, tensor, elements));
  }
  return time;
}

}}  // namespace plumb::planner
