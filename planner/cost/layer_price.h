#pragma once
// What one layer costs on one rank, pass by pass: the kernels of kernels/layer.h and the collectives of the tensor
// group around them (Shoeybi et al. 2019; with sequence parallelism Korthikanti et al. 2022). E = b s h elements:
//
//   transformer  F  2 all-reduce E              | sp: 2 all-gather + 2 reduce-scatter E
//                I  2 all-reduce E              | sp: 2 all-gather + 2 reduce-scatter E
//                W                              | sp: 2 all-gather E (the inputs of QKV and the MLP again)
//   embedding    F  1 all-reduce E              | sp: 1 reduce-scatter E;   W | sp: 1 all-gather E
//   head         F  3 all-reduce b s (fp32)     | sp: and 1 all-gather E
//                I  1 all-reduce E              | sp: 1 reduce-scatter E;   W | sp: 1 all-gather E
// (the three small ones are the maximum, the sum and the target's logit of a softmax over a divided vocabulary)

#include <array>
#include <cstdint>
#include <vector>

#include "planner/cost/collective_price.h"
#include "planner/cost/kernel_price.h"
#include "schedules/cost_table.h"

namespace plumb {

inline constexpr int kCollectiveKindCount = 5;

/// Compute and blocking collectives of one pass, summed.
struct PassPrice {
  Seconds compute{0};
  std::array<Seconds, kCollectiveKindCount> collective_seconds{};     ///< [CollectiveKind]
  std::array<std::int64_t, kCollectiveKindCount> collective_bytes{};  ///< [CollectiveKind]

  PassPrice& operator+=(const PassPrice& other);
};

Seconds total(const PassPrice& price);

/// The compute, then one segment of the tensor group for each kind of collective; nothing for what lasts no time.
std::vector<Segment> segments_for(const PassPrice& price);

struct LayerPrice {
  PassPrice forward;
  PassPrice input_grad;
  PassPrice weight_grad;
  PassPrice rebuild_selective;  ///< norms and activation once more
  PassPrice rebuild_full;       ///< a transformer layer's forward once more; nothing for embedding and head
};

LayerPrice layer_price(const KernelPrices& kernels, const CollectivePrices& collectives,
                       const GroupPlacement& tensor_group, const Layer& layer, const LayerWork& work);

/// One optimizer step of the layer's parameters on one rank, which updates 1 / `shards` of each tensor.
Seconds optimizer_time(const KernelPrices& kernels, const Layer& layer, int tensor_parallel, int shards);

}  // namespace plumb
