#include "planner/evaluate/stage_passes.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace plumb { inline namespace planner {
namespace {

/// Adds that pass of `count` layers.
void add(PassPrice& sum, const PassPrice& price, int count) {
  sum.compute += count * price.compute;
  sum.host += count * price.host;
  sum.host_sharpness = std::max(sum.host_sharpness, price.host_sharpness);
  for (std::size_t group = 0; group < kInnerGroupCount; ++group) {
    for (std::size_t kind = 0; kind < kPricedCollectiveCount; ++kind) {
      sum.collective_seconds[group][kind] += count * price.collective_seconds[group][kind];
      sum.collective_bytes[group][kind] += count * price.collective_bytes[group][kind];
    }
  }
}

}  // namespace

const PassPrice& rebuild_price(const LayerPrice& price, Recompute recompute) {
  static const PassPrice kNothing;
  if (recompute == Recompute::kFull) return price.rebuild_full;
  return recompute == Recompute::kSelective ? price.rebuild_selective : kNothing;
}

Seconds steady_seconds(const LayerPrice& price, Recompute recompute) {
  return total(price.forward) + total(rebuild_price(price, recompute)) + total(price.input_grad) +
         total(price.weight_grad);
}

std::vector<Recompute> recomputation_by_layer(const Layout& layout, const std::vector<Layer>& layers) {
  std::vector<Recompute> recomputed(layers.size(), layout.recompute);
  if (layout.recompute_layers == 0) return recomputed;
  int transformers = 0;
  for (std::size_t index = 0; index < layers.size(); ++index)
    if (std::holds_alternative<TransformerLayer>(layers[index]) && ++transformers > layout.recompute_layers)
      recomputed[index] = Recompute::kNone;
  return recomputed;
}

std::vector<LayerPrice> with_kept_layers(std::vector<LayerPrice> prices) {
  const std::size_t kinds = prices.size();
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    LayerPrice kept = prices[kind];
    kept.rebuild_full = kept.rebuild_selective = {};
    prices.push_back(kept);
  }
  return prices;
}

StagePasses stage_passes(const std::vector<KindCount>& counts, const std::vector<LayerPrice>& prices,
                         Recompute recompute, BackwardForm form) {
  StagePasses passes;
  for (const auto& [kind, count] : counts) {
    const LayerPrice& price = prices[kind];
    add(passes.forward, price.forward, count);
    if (recompute != Recompute::kNone) add(passes.rebuild, rebuild_price(price, recompute), count);
    add(passes.input_grad, price.input_grad, count);
    add(passes.weight_grad, price.weight_grad, count);
    add(passes.backward, whole_backward(price), count);
  }
  if (form.recompute_actions) return passes;
  passes.input_grad += passes.rebuild;
  passes.backward += passes.rebuild;
  return passes;
}

void add_incoming_copies(StagePasses& passes, const KernelPrices& kernels, std::int64_t activation_bytes,
                         std::int64_t gradient_bytes) {
  const auto copy = [&](std::int64_t bytes) {
    if (bytes == 0) return Seconds{0};
    return kernel_time(kernels, kernel_call(KernelKind::kCopy, {bytes / kernels.element_bytes}));
  };
  passes.forward.compute += copy(activation_bytes);
  for (PassPrice* pass : {&passes.input_grad, &passes.backward}) pass->compute += copy(gradient_bytes);
}

void price_compute(StageCosts& costs, const StagePasses& passes, Seconds action_overhead) {
  const auto put = [&](Op op, const PassPrice& pass) {
    std::vector<Segment> segments;
    if (action_overhead.count() > 0 && total(pass).count() > 0) {
      PassPrice longer = pass;
      longer.compute += action_overhead;
      segments = segments_for(longer);
    } else {
      segments = segments_for(pass);
    }
    costs.segments[static_cast<std::size_t>(op)] = whole(std::move(segments));
  };
  put(Op::kForward, passes.forward);
  put(Op::kRecompute, passes.rebuild);
  put(Op::kInputGrad, passes.input_grad);
  put(Op::kWeightGrad, passes.weight_grad);
  put(Op::kBackward, passes.backward);
}

SegmentsByPart whole(std::vector<Segment> segments) {
  SegmentsByPart parts;  // a braced list would copy
  parts.push_back(std::move(segments));
  return parts;
}

}}  // namespace plumb::planner
