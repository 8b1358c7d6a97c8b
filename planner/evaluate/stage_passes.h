#pragma once
// The passes of a stage: sums over its layers, and as segments of its operations.

#include <cstdint>
#include <vector>

#include "planner/price/layer/layer_price.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/layout.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace planner {

/// The number of layers of a kind in a stage.
struct KindCount {
  int kind = 0;
  int count = 0;

  friend bool operator==(const KindCount&, const KindCount&) = default;
};

/// Returns the part of a layer that this recomputation repeats.
const PassPrice& rebuild_price(const LayerPrice& price, Recompute recompute);

/// Returns the time of a layer in a steady pipeline: one micro-batch's forward and backward.
Seconds steady_seconds(const LayerPrice& price, Recompute recompute);

/// Returns what each of a stage's layers rebuilds: Layout::recompute, or nothing behind its recompute_layers.
std::vector<Recompute> recomputation_by_layer(const Layout& layout, const std::vector<Layer>& layers);

/// Returns the table of prices with the kinds of layers twice, as it is where only some layers are rebuilt: those that
/// are rebuilt, and behind them those that are kept.
std::vector<LayerPrice> with_kept_layers(std::vector<LayerPrice> prices);

/// The passes of a stage by themselves. Without R actions recomputation stands at the head of `input_grad` and
/// `backward` too.
struct StagePasses {
  PassPrice forward, rebuild, input_grad, weight_grad, backward;
};

/// `prices` by kind of layer.
StagePasses stage_passes(const std::vector<KindCount>& counts, const std::vector<LayerPrice>& prices,
                         Recompute recompute, BackwardForm form);

/// Adds the copies that Plumb's own device makes of tensors that come from other stages, to the place where the first
/// or the last layer takes them: bytes of activations in the forward, of gradients in the backward.
void add_incoming_copies(StagePasses& passes, const KernelPrices& kernels, std::int64_t activation_bytes,
                         std::int64_t gradient_bytes);

/// Puts F, R, I, W and B into the stage's segments; each that lasts any time lasts `action_overhead` longer.
void price_compute(StageCosts& costs, const StagePasses& passes, Seconds action_overhead);

/// The segments of an operation that has a single part.
SegmentsByPart whole(std::vector<Segment> segments);

}}  // namespace plumb::planner
