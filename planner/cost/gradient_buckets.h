#pragma once
// Gradients in buckets, which are reduced while the last backward of the step goes on (Li et al. 2020, PyTorch DDP;
// Megatron-LM's overlap of the gradient reduction is the same).
//
//   // three layers of 10 parameters; the backward takes the last layer first, 1 s each
//   gradient_buckets({{10, 1s}, {10, 1s}, {10, 1s}}, 15)  ->  {20, 10} parameters, complete after 2 s and 3 s

#include <cstdint>
#include <vector>

#include "schedules/time.h"

namespace plumb {

/// One layer of a stage on one rank.
struct LayerGradient {
  std::int64_t parameters = 0;
  Seconds backward{0};  ///< its share of the stage's last B or W
};

struct GradientBuckets {
  std::vector<std::int64_t> parameters;  ///< [bucket] in the order of completion
  std::vector<Seconds> offsets;          ///< [bucket] from the start of the last B or W
};

/// Buckets of whole layers, `layers` in forward order: from the last layer on, each is closed by the layer that brings
/// it to `bucket_parameters` or more; the first layer closes the last. The last bucket is complete when the backward
/// ends. Throws SpecError if bucket_parameters is not above 0 or there is no layer.
GradientBuckets gradient_buckets(const std::vector<LayerGradient>& layers, std::int64_t bucket_parameters);

}  // namespace plumb
