#include "executor/training/training_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "executor/parameters/training_state.h"
#include "executor/spec/fingerprint.h"
#include "executor/spec/run_shape.h"
#include "executor/training/check_run_spec.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

Batches batches_of(const Schedule& schedule, const WeightVersions& versions) {
  Batches batches{std::vector<int>(static_cast<std::size_t>(schedule.microbatches), 0), {}};
  batches.sizes.assign(1, 0);
  for (std::size_t i = 0; i < batches.batch_of.size(); ++i) {
    int batch = -1;
    for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
      if (versions.version[stage][i] < 0) continue;
      if (batch >= 0 && batch != versions.batch[stage][i])
        throw ScheduleError(
            fmt::format("{}: micro-batch {} belongs to different optimizer steps on different stages; list "
                        "each stage's OPTIMIZER_STEPs behind the same micro-batches",
                        schedule.name, i));
      batch = versions.batch[stage][i];
    }
    batches.batch_of[i] = batch;
    batches.sizes.resize(std::max(batches.sizes.size(), static_cast<std::size_t>(batch) + 1), 0);
    ++batches.sizes[static_cast<std::size_t>(batch)];
  }
  return batches;
}

/// Returns what the run asks of the replay besides its schedule.
ReplayPolicy replay_policy(const RunSpec& spec) {
  return {.zero = spec.zero,
          .shard = spec.shard,
          .agrees = spec.clip_norm > 0 || spec.half == HalfFormat::kFp16,
          .sequence_parallel = spec.sequence_parallel,
          .resharding = spec.resharding,
          .layerwise = spec.layerwise};
}

/// Returns the stages that hold the two ends of a tied table, one pair a lane; empty if the head is not tied.
std::vector<TiedStages> tied_stages(const RunSpec& spec) {
  const std::vector<StagePlace>& stages = spec.schedule.stages;
  std::vector<TiedStages> tied;
  for (std::size_t last = 0; last < stages.size(); ++last) {
    const auto* head = std::get_if<HeadLayer>(&spec.stage_layers[last].back());
    if (head == nullptr || !head->tied) continue;
    const auto first = std::ranges::find_if(
        stages, [&](const StagePlace& place) { return place.lane == stages[last].lane && place.model_part == 0; });
    tied.push_back({.embedding = static_cast<int>(first - stages.begin()),
                    .head = static_cast<int>(last),
                    .elements = head->vocab * head->hidden});
  }
  return tied;
}

}  // namespace

TrainingPlan plan_training(const RunSpec& spec) {
  require_runnable(spec);
  TrainingPlan plan{.replay = plan_replay(spec.schedule, rank_grid_of(spec), tied_stages(spec), replay_policy(spec)),
                    .versions = weight_versions(spec.schedule)};
  plan.batches = batches_of(spec.schedule, plan.versions);
  plan.first_layer = first_layers(spec);
  plan.bucket_layers = bucket_layers(spec);
  if (spec.resume != nullptr) plan.first_step = static_cast<int>(spec.resume->steps);
  return plan;
}

std::int64_t batch_tokens(const RunSpec& spec, const TrainingPlan& plan, std::size_t batch) {
  return spec.grid.data * plan.batches.sizes[batch] * spec.microbatch * spec.sequence;
}

std::uint64_t fingerprint(const RunSpec& spec) {
  Fingerprint print;
  const ProcessGrid& grid = spec.grid;
  print.add(spec.schedule);
  for (const int number : {grid.data,
                           grid.pipeline,
                           grid.tensor,
                           grid.context,
                           grid.expert,
                           expert_tensor_ranks(grid),
                           int{spec.sequence_parallel},
                           static_cast<int>(spec.context_attention),
                           static_cast<int>(spec.sends),
                           static_cast<int>(spec.rebuild),
                           static_cast<int>(spec.rebuild_which),
                           spec.rebuild_layers,
                           static_cast<int>(spec.optimizer.index()),
                           spec.half ? static_cast<int>(*spec.half) : -1,
                           spec.zero,
                           spec.shard,
                           static_cast<int>(spec.shard_by),
                           int{spec.offload_optimizer},
                           spec.steps,
                           static_cast<int>(spec.resharding),
                           int{spec.layerwise}})
    print.add(number);
  for (const StageMesh& mesh : spec.meshes)
    for (const int degree : {mesh.data, mesh.tensor}) print.add(degree);
  for (const std::int64_t number : {spec.microbatch, spec.sequence, static_cast<std::int64_t>(spec.seed),
                                    spec.resume == nullptr ? 0 : spec.resume->steps, spec.samples.samples})
    print.add(number);
  print.add(spec.clip_norm);
  for (const std::vector<Layer>& layers : spec.stage_layers) {
    print.add(static_cast<std::uint64_t>(layers.size()));
    for (const Layer& layer : layers) {
      print.add(std::string_view(layer_kind_name(layer)));
      for (const ParameterTensor& parameter : layer_parameters(layer)) {
        print.add(std::string_view(parameter.name));
        for (const std::int64_t size : parameter.shape) print.add(size);
      }
    }
  }
  print.add(std::string_view(spec.source));
  print.add(std::string_view(reinterpret_cast<const char*>(spec.text.data()), spec.text.size()));
  return print.value();
}

}}  // namespace plumb::executor
