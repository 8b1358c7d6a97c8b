#include "planner/price/layer/layer_price.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "planner/price/framework/kernel_time.h"
#include "planner/price/framework/layer_ops.h"

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

/// Returns the probability that all of `drawn` different ones among `all` are others than `own` of them.
double missed(double all, double own, int drawn) {
  double probability = 1;
  for (int i = 0; i < drawn; ++i) probability *= std::max(0.0, (all - own - i) / std::max(1.0, all - i));
  return probability;
}

/// Returns the number of ways to draw so many of `all`.
double ways(double all, double drawn) {
  double product = 1;
  for (double i = 0; i < drawn; ++i) product *= (all - i) / (i + 1);
  return product;
}

/// Returns the share of a token's copies that are the first for one of `parts` equal parts of the experts: the expected
/// number of parts that hold one of its picks, over the picks. Groups and experts are drawn evenly, and a part lies in
/// a group or is of whole groups.
double first_copies(const ExpertPicks& of, int parts) {
  const double groups = of.groups, drawn = of.groups_per_token, each = of.experts / groups;
  const double own_groups = std::max(1.0, std::round(groups / parts));
  const double own = std::min(each, static_cast<double>(of.experts) / parts);  // experts of the part in each of them
  double held = 0;
  for (int count = 1; count <= std::min(own_groups, drawn); ++count) {
    const double of_own = ways(own_groups, count) * ways(groups - own_groups, drawn - count) / ways(groups, drawn);
    held += of_own * (1 - missed(each * drawn, own * count, of.picks));
  }
  return parts * held / std::max(1, of.picks);
}

/// Returns the time of the tokens to their experts and back. A token travels once for each rank; over the network once
/// for each node, inside which it is handed on.
Seconds tokens_time(const CollectivePrices& prices, const GroupPlacement& placement, const KernelExchange& exchange) {
  const auto bytes = static_cast<double>(exchange.bytes);
  const auto time = [&prices](const GroupPlacement& where, double buffer) {
    return collective_time(prices, where, CollectiveKind::kAllToAll, static_cast<std::int64_t>(buffer));
  };
  const double to_ranks = bytes * first_copies(exchange.picks, placement.ranks);
  if (placement.nodes == 1 || placement.ranks_per_node == 1) return time(placement, to_ranks);
  const double to_nodes = bytes * first_copies(exchange.picks, placement.nodes);
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
    const Seconds moved = exchange.picks.experts > 0
                              ? tokens_time(prices_, placement, exchange)
                              : collective_time(prices_, placement, exchange.kind, exchange.bytes);
    const Seconds once = moved / rate + fixed;
    pass.collective_seconds[group][kind] += exchange.count * shown * once;
    pass.collective_bytes[group][kind] += shown_bytes(exchange.count * exchange.bytes, shown);
  }

 private:
  const CollectivePrices& prices_;
  const InnerGroups& groups_;
};

/// Returns a program's exchange as one that is priced. A ring moves as much as the collective with the same result.
KernelExchange priced_exchange(const Exchange& exchange, std::int64_t element_bytes) {
  using enum CollectiveKind;
  constexpr std::array<CollectiveKind, kExchangeKindCount> kKinds = {kAllReduce, kAllGather, kReduceScatter,
                                                                     kAllToAll,  kAllGather, kReduceScatter};
  constexpr std::array<Group, kInnerGroupCount> kGroups = {Group::kTensor, Group::kContext, Group::kExpert};
  constexpr std::int64_t kSinglePrecision = 4;
  return {.group = kGroups[static_cast<std::size_t>(exchange.group)],
          .kind = kKinds[static_cast<std::size_t>(exchange.kind)],
          .bytes = exchange.elements * (exchange.type == StoredType::kElement ? element_bytes : kSinglePrecision)};
}

/// Returns the price of the steps of one pass; equal exchanges are priced together.
PassPrice steps_price(const KernelPrices& kernels, const Exchanges& groups, std::span<const LayerStep> steps) {
  PassPrice price;
  std::vector<KernelExchange> exchanges;
  for (const LayerStep& step : steps) {
    if (const KernelCall* call = step.call()) {
      price.compute += kernel_time(kernels, *call) / step.ranks;
      price.host += launch_time(kernels, *call);
      continue;
    }
    const KernelExchange exchange = priced_exchange(*step.exchange(), kernels.element_bytes);
    const auto same = std::ranges::find_if(exchanges, [&](const KernelExchange& other) {
      return other.group == exchange.group && other.kind == exchange.kind && other.bytes == exchange.bytes;
    });
    if (same == exchanges.end())
      exchanges.push_back(exchange);
    else
      ++same->count;
  }
  for (const KernelExchange& exchange : exchanges) groups.add(price, exchange);
  return price;
}

LayerPrice own_price(const KernelPrices& kernels, const Exchanges& groups, const Layer& layer, const LayerWork& work,
                     bool rebuilds_cheap) {
  const LayerProgram plain = layer_program(layer, work, kernels.fused ? Machine::kDevice : Machine::kHost);
  std::optional<LayerProgram> joined;
  if (kernels.fused) joined = fused_program(layer, work, rebuilds_cheap);
  const LayerProgram& run = joined ? *joined : plain;
  LayerPrice price{.forward = steps_price(kernels, groups, steps_of(run, Pass::kForward)),
                   .input_grad = steps_price(kernels, groups, steps_of(run, Pass::kInputGrad)),
                   .weight_grad = steps_price(kernels, groups, steps_of(run, Pass::kWeightGrad))};
  for (const KernelCall& call : recomputed_kernels(plain, Recompute::kSelective)) {
    price.rebuild_selective.compute += kernel_time(kernels, call);
    price.rebuild_selective.host += launch_time(kernels, call);
  }
  if (kernels.fused || is_block(layer)) price.rebuild_full = price.forward;
  return price;
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
  const LayerOps ops = layer_ops(layer, work, stack, element_bytes(kernels, stack));
  const auto price = [&](const PassOps& of) { return pass_price(kernels, groups, of, stack, work.tensor_parallel); };
  LayerPrice result{.forward = price(ops.forward),
                    .input_grad = price(ops.input_grad),
                    .weight_grad = price(ops.weight_grad),
                    .rebuild_selective = price(ops.rebuild_selective),
                    .rebuild_full = price(ops.rebuild_full)};
  if (is_block(layer)) {
    // A framework's Python launches kernels besides those listed: views that copy, casts, statistics, zeroing.
    const auto* block = std::get_if<TransformerLayer>(&layer);
    const int all = launched(stack, false) ? 1 : 0;
    const bool is_mixture = block != nullptr && block->experts > 0;
    const int experts = is_mixture && launched(stack, true) ? stack.expert_launches : 0;
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
                       const Layer& layer, const LayerWork& work, const StackSpec* stack, bool rebuilds_cheap) {
  const Exchanges exchanges(collectives, groups);
  return stack != nullptr ? framework_price(kernels, exchanges, layer, work, *stack)
                          : own_price(kernels, exchanges, layer, work, rebuilds_cheap);
}

Seconds optimizer_time(const KernelPrices& kernels, const Layer& layer, const LayerWork& work, int shards,
                       int expert_shards) {
  PassPrice updates;
  for (const ParameterTensor& tensor : layer_parameters(layer, work.tensor_parallel, work.experts)) {
    if (tensor.balance_rate > 0) continue;
    const int divided = tensor.expert ? expert_shards : shards;
    const std::int64_t elements = (element_count(tensor) + divided - 1) / divided;
    const KernelCall call = update_call(kernels, tensor, elements);
    updates.compute += kernel_time(kernels, call);
    updates.host += launch_time(kernels, call);
  }
  return total(updates);
}

}}  // namespace plumb::planner
