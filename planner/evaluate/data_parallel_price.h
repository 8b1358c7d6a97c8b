#pragma once
// The price of a stage's replicas: reducing its gradients and gathering its weights, whole, by bucket, or layer by
// layer.

#include <cstdint>
#include <vector>

#include "planner/evaluate/gradient_buckets.h"
#include "planner/price/collective/collective_price.h"
#include "planner/price/pricing.h"
#include "planner/spec/layout.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace planner {

/// Parameters of a stage on one rank, and where their replicas sit.
struct Replicated {
  std::int64_t parameters = 0;  ///< besides those of routed experts
  std::int64_t expert_parameters = 0;
  std::int64_t largest_layer = 0;
  Pricing::ReplicaGroups groups;
  Pricing::ReplicaGroups expert_groups;
};

struct DataParallelPrice {
  SegmentsByPart reduce_grad;           ///< [bucket]
  SegmentsByPart unshard;               ///< empty with ZeRO 0
  std::vector<Seconds> bucket_offsets;  ///< [bucket]; empty without buckets
  Seconds forward_slowed{0};            ///< by which a forward is longer beside the collectives that it hides
  Seconds backward_slowed{0};
};

/// Prices the collectives of the stage's replicas; nothing without replicas. `forward` and `backward` are the stage's
/// passes. Gradients are reduced among the replicas that share state, and then each share among its copies. Beside the
/// passes a stack hides a part of the collectives that are whole (spec/stack_spec.h), and its ZeRO 3 goes layer by
/// layer. Each of `buckets` is priced whole, because the simulation finds what is hidden. Under ZeRO 3 of a stack each
/// micro-batch gathers beside both its passes and reduces beside the second, over the same links. The passes then copy
/// weights and gradients (spec/stack_spec.h), and compute without the SMs that NCCL holds
/// (price/collective/nccl_occupied_units.h).
DataParallelPrice data_parallel_price(Pricing& pricing, const Layout& layout, const Replicated& stage, Seconds forward,
                                      Seconds backward, const std::vector<GradientBucket>& buckets);

/// Returns the number of gradients that fill one of the layout's buckets.
std::int64_t bucket_parameters(const Pricing& pricing, const Layout& layout);

}}  // namespace plumb::planner
