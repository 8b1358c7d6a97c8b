#include "planner/cost/layer_price.h"

#include <algorithm>

namespace plumb {
namespace {

bool rebuilt_selectively(KernelKind kind) {
  return kind == KernelKind::kNormForward || kind == KernelKind::kActivationForward;
}

/// Adds collectives of the tensor group to passes.
class TensorGroup {
 public:
  TensorGroup(const CollectivePrices& prices, const GroupPlacement& placement)
      : prices_(prices), placement_(placement) {}

  void add(PassPrice& pass, CollectiveKind kind, int count, std::int64_t bytes) const {
    if (placement_.ranks == 1) return;
    const auto index = static_cast<std::size_t>(kind);
    pass.collective_seconds[index] += count * collective_time(prices_, placement_, kind, bytes);
    pass.collective_bytes[index] += count * bytes;
  }

 private:
  const CollectivePrices& prices_;
  const GroupPlacement& placement_;
};

void add_collectives(LayerPrice& price, const TensorGroup& group, const Layer& layer, const LayerWork& work,
                     std::int64_t element_bytes) {
  using enum CollectiveKind;
  const std::int64_t tokens = work.microbatch * work.sequence;
  const bool sequence_parallel = work.sequence_parallel;
  if (const auto* block = std::get_if<TransformerLayer>(&layer)) {
    const std::int64_t bytes = tokens * block->hidden * element_bytes;
    for (PassPrice* pass : {&price.forward, &price.input_grad}) {
      if (sequence_parallel) {
        group.add(*pass, kAllGather, 2, bytes);
        group.add(*pass, kReduceScatter, 2, bytes);
      } else {
        group.add(*pass, kAllReduce, 2, bytes);
      }
    }
    if (sequence_parallel) group.add(price.weight_grad, kAllGather, 2, bytes);
  } else if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer)) {
    const std::int64_t bytes = tokens * embedding->hidden * element_bytes;
    group.add(price.forward, sequence_parallel ? kReduceScatter : kAllReduce, 1, bytes);
    if (sequence_parallel) group.add(price.weight_grad, kAllGather, 1, bytes);
  } else if (const auto* head = std::get_if<HeadLayer>(&layer)) {
    const std::int64_t bytes = tokens * head->hidden * element_bytes;
    constexpr std::int64_t kSinglePrecision = 4;
    group.add(price.forward, kAllReduce, 3, tokens * kSinglePrecision);
    group.add(price.input_grad, sequence_parallel ? kReduceScatter : kAllReduce, 1, bytes);
    if (sequence_parallel) {
      group.add(price.forward, kAllGather, 1, bytes);
      group.add(price.weight_grad, kAllGather, 1, bytes);
    }
  }
}

}  // namespace

PassPrice& PassPrice::operator+=(const PassPrice& other) {
  compute += other.compute;
  for (std::size_t i = 0; i < kCollectiveKindCount; ++i) {
    collective_seconds[i] += other.collective_seconds[i];
    collective_bytes[i] += other.collective_bytes[i];
  }
  return *this;
}

Seconds total(const PassPrice& price) {
  Seconds sum = price.compute;
  for (const Seconds seconds : price.collective_seconds) sum += seconds;
  return sum;
}

std::vector<Segment> segments_for(const PassPrice& price) {
  std::vector<Segment> segments;
  if (price.compute.count() > 0) segments.push_back({.kind = Segment::Kind::kCompute, .seconds = price.compute});
  for (std::size_t i = 0; i < kCollectiveKindCount; ++i) {
    if (!(price.collective_seconds[i].count() > 0)) continue;
    segments.push_back({.kind = Segment::Kind::kCollective,
                        .seconds = price.collective_seconds[i],
                        .group = Group::kTensor,
                        .collective = static_cast<CollectiveKind>(i),
                        .bytes = price.collective_bytes[i]});
  }
  return segments;
}

LayerPrice layer_price(const KernelPrices& kernels, const CollectivePrices& collectives,
                       const GroupPlacement& tensor_group, const Layer& layer, const LayerWork& work) {
  LayerPrice price;
  for (const KernelCall& call : layer_kernels(layer, work, Pass::kForward)) {
    const Seconds time = kernel_time(kernels, call);
    price.forward.compute += time;
    if (rebuilt_selectively(call.kind)) price.rebuild_selective.compute += time;
  }
  for (const KernelCall& call : layer_kernels(layer, work, Pass::kInputGrad)) {
    price.input_grad.compute += kernel_time(kernels, call);
  }
  for (const KernelCall& call : layer_kernels(layer, work, Pass::kWeightGrad)) {
    price.weight_grad.compute += kernel_time(kernels, call);
  }
  add_collectives(price, TensorGroup(collectives, tensor_group), layer, work, kernels.element_bytes);
  if (std::holds_alternative<TransformerLayer>(layer)) price.rebuild_full = price.forward;
  return price;
}

Seconds optimizer_time(const KernelPrices& kernels, const Layer& layer, int tensor_parallel, int shards) {
  Seconds time{0};
  for (const KernelCall& call : layer_kernels(layer, {.tensor_parallel = tensor_parallel}, Pass::kOptimizer)) {
    const std::int64_t elements = (call.shape[0] + shards - 1) / shards;
    time += kernel_time(kernels, kernel_call(KernelKind::kAdamW, {elements}));
  }
  return time;
}

}  // namespace plumb
