#include "planner/cost/gradient_buckets.h"

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb {

GradientBuckets gradient_buckets(const std::vector<LayerGradient>& layers, std::int64_t bucket_parameters) {
  if (bucket_parameters <= 0)
    throw SpecError(fmt::format("a gradient bucket cannot hold {} parameters: give 1 or more", bucket_parameters));
  if (layers.empty()) throw SpecError("a stage without layers has no gradients to put into buckets");
  GradientBuckets buckets;
  std::int64_t open_parameters = 0;
  Seconds now{0};
  for (std::size_t i = layers.size(); i-- > 0;) {
    open_parameters += layers[i].parameters;
    now += layers[i].backward;
    if (open_parameters < bucket_parameters && i > 0) continue;
    buckets.parameters.push_back(open_parameters);
    buckets.offsets.push_back(now);
    open_parameters = 0;
  }
  return buckets;
}

}  // namespace plumb
