#include "planner/evaluate/gradient_buckets.h"

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {

std::vector<GradientBucket> gradient_buckets(const std::vector<LayerGradient>& layers, std::int64_t bucket_parameters,
                                             Seconds backward) {
  if (bucket_parameters <= 0)
    throw SpecError(fmt::format("a gradient bucket cannot hold {} parameters: give 1 or more", bucket_parameters));
  if (layers.empty()) throw SpecError("a stage without layers has no gradients to put into buckets");
  Seconds all{0};
  for (const LayerGradient& layer : layers) all += layer.backward;
  const double stretch = all.count() > 0 ? backward / all : 0;

  std::vector<GradientBucket> buckets;
  GradientBucket open;
  Seconds now{0};
  for (std::size_t i = layers.size(); i-- > 0;) {
    open.parameters += layers[i].parameters;
    open.expert_parameters += layers[i].expert_parameters;
    ++open.layers;
    now += layers[i].backward;
    open.offset = i == 0 ? backward : now * stretch;
    if (open.parameters + open.expert_parameters < bucket_parameters && i > 0) continue;
    buckets.push_back(open);
    open = {};
  }
  return buckets;
}

}}  // namespace plumb::planner
