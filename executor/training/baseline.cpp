#include "executor/training/baseline.h"

#include <algorithm>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"

namespace plumb { inline namespace executor {

RunSpec baseline_of(const RunSpec& spec) {
  if (is_asynchronous(spec.schedule))
    throw SpecError("an asynchronous schedule computes what no single rank does: compare a synchronous one");
  RunSpec alone = spec;
  const std::vector<StagePlace>& stages = spec.schedule.stages;
  alone.stage_layers = {{}};
  for (int part = 0;; ++part) {
    const auto stage = std::ranges::find(stages, part, &StagePlace::model_part);
    if (stage == stages.end()) break;
    const std::vector<Layer>& layers = spec.stage_layers[static_cast<std::size_t>(stage - stages.begin())];
    alone.stage_layers[0].insert(alone.stage_layers[0].end(), layers.begin(), layers.end());
  }
  alone.schedule =
      lower(make_schedule("naive", {.ranks = 1, .microbatches = spec.schedule.microbatches * spec.grid.data}));
  alone.grid = {};
  alone.meshes.clear();
  alone.rebuild = Recompute::kNone;
  alone.sequence_parallel = false;
  alone.zero = 0;
  alone.layerwise = false;
  alone.bucket_layers.clear();
  alone.offload_optimizer = false;
  return alone;
}

}}  // namespace plumb::executor
