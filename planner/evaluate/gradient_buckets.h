#pragma once
// Gradients in buckets, which are reduced while the last backward of the step goes on (Li et al. 2020, PyTorch DDP;
// Megatron-LM's overlap of the gradient reduction is the same).
//
//   // three layers of 10 parameters; the backward takes the last layer first, 1 s each
//   gradient_buckets({{10, 0, 1s}, {10, 0, 1s}, {10, 0, 1s}}, 15, 3s)  ->  {20, 0, 2s, 2}, {10, 0, 3s, 1}

#include <cstdint>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// One layer of a stage on one rank.
struct LayerGradient {
  std::int64_t parameters = 0;         ///< besides those of routed experts
  std::int64_t expert_parameters = 0;  ///< which have other replicas, and are reduced behind the others of their bucket
  Seconds backward{0};                 ///< its share of the stage's last B or W
};

struct GradientBucket {
  std::int64_t parameters = 0;
  std::int64_t expert_parameters = 0;
  Seconds offset{0};  ///< when it is complete, from the start of the last B or W
  int layers = 0;     ///< layers of the bucket; they end where the bucket before begins

  friend bool operator==(const GradientBucket&, const GradientBucket&) = default;
};

/// Returns buckets of whole layers, in the order in which they are complete. `layers` are in forward order; from the
/// last layer on, the layer that brings a bucket to `bucket_parameters` or more closes it, and the first layer closes
/// the last bucket. The last bucket is complete when the backward ends, after `backward`. The layers' shares are
/// stretched to that time, because a stage is shorter than the sum of its layers where the host hides. Throws SpecError
/// if bucket_parameters is not above 0 or there is no layer.
std::vector<GradientBucket> gradient_buckets(const std::vector<LayerGradient>& layers, std::int64_t bucket_parameters,
                                             Seconds backward);

}}  // namespace plumb::planner
