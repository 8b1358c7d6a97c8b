#pragma once
// What replicas cost a stage: reducing its gradients and gathering its weights, whole, by bucket, or layer by layer.

#include <cstdint>
#include <vector>

#include "planner/evaluate/gradient_buckets.h"
#include "planner/evaluate/priced_layout.h"
#include "planner/price/collective/collective_price.h"

namespace plumb { inline namespace planner {

/// Parameters of a stage on one rank, and where their replicas sit.
struct Replicated {
  std::int64_t parameters = 0;  ///< besides those of routed experts
  std::int64_t expert_parameters = 0;
  std::int64_t largest_layer = 0;
  GroupPlacement group;
  GroupPlacement expert_group;
};

struct DataParallelPrice {
  SegmentsByPart reduce_grad;           ///< [bucket]
  SegmentsByPart unshard;               ///< empty with ZeRO 0
  std::vector<Seconds> bucket_offsets;  ///< [bucket]; empty without buckets
  Seconds forward_slowed{0};            ///< what a forward lasts longer beside the collectives that it hides
  Seconds backward_slowed{0};
};

/// `forward` and `backward` are the stage's passes, beside which a stack hides a part of what is reduced or gathered
/// whole (spec/stack_spec.h); ZeRO 3 of a stack goes layer by layer beside them. With `buckets` each is priced whole:
/// what is hidden is the simulation's answer. Under ZeRO 3 of a stack each micro-batch gathers beside both its passes
/// and reduces beside the second: they compute without the units that NCCL then holds
/// (price/collective/nccl_occupied_units.h). Nothing without replicas.
DataParallelPrice data_parallel_price(Pricing& pricing, const Layout& layout, const Replicated& stage, Seconds forward,
                                      Seconds backward, const std::vector<GradientBucket>& buckets);

/// How many gradients fill one of the layout's buckets.
std::int64_t bucket_parameters(const TrainingSpec& training, const Layout& layout);

}}  // namespace plumb::planner
