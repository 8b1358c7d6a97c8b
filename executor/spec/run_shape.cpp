#include "executor/spec/run_shape.h"

#include <algorithm>

namespace plumb { inline namespace executor {

RankGrid rank_grid_of(const RunSpec& spec) {
  return {spec.grid, spec.meshes};
}

std::vector<int> first_layers(const RunSpec& spec) {
  const std::vector<StagePlace>& stages = spec.schedule.stages;
  std::vector<int> first(stages.size(), 0);
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    for (int part = 0; part < stages[stage].model_part; ++part) {
      const auto earlier = std::ranges::find(stages, part, &StagePlace::model_part);
      first[stage] += static_cast<int>(spec.stage_layers[static_cast<std::size_t>(earlier - stages.begin())].size());
    }
  return first;
}

std::vector<std::vector<int>> bucket_layers(const RunSpec& spec) {
  if (!spec.bucket_layers.empty()) return spec.bucket_layers;
  std::vector<int> buckets(spec.stage_layers.size(), 1);
  for (const std::vector<Action>& actions : spec.schedule.ranks)
    for (const Action& action : actions)
      if (action.op == Op::kReduceGrad) {
        int& count = buckets[static_cast<std::size_t>(action.stage)];
        count = std::max(count, action.part + 1);
      }
  std::vector<std::vector<int>> layers;
  for (std::size_t stage = 0; stage < buckets.size(); ++stage) {
    layers.emplace_back();
    const int all = static_cast<int>(spec.stage_layers[stage].size()), count = buckets[stage];
    for (int bucket = 0; bucket < count; ++bucket)
      layers.back().push_back(all * (bucket + 1) / count - all * bucket / count);
  }
  return layers;
}

}}  // namespace plumb::executor
