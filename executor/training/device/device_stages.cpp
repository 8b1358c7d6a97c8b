#include "executor/training/device/device_stages.h"

#include <algorithm>
#include <variant>

#include "executor/parameters/device/stage_rebuild.h"

namespace plumb { inline namespace executor {
namespace {

/// [micro-batch] 1 / tokens of its batch.
std::vector<float> gradient_scales_of(const RunSpec& spec, const TrainingPlan& training) {
  std::vector<float> scales;
  for (const int batch : training.batches.batch_of)
    scales.push_back(
        static_cast<float>(1.0 / static_cast<double>(batch_tokens(spec, training, static_cast<std::size_t>(batch)))));
  return scales;
}

DeviceStageOptions options_of(const RunSpec& spec, const TrainingPlan& training, const DeviceGroupTable& groups,
                              const GridCoordinates& place, std::size_t stage) {
  const RankGrid& grid = training.replay.grid;
  const int rank = world_rank_of(grid, place), parts = std::max(1, parts_of_microbatch(grid, place.pipeline));
  const int microbatches = training.replay.schedule.microbatches, context = std::max(1, spec.grid.context);
  LayerWork work{.microbatch = spec.microbatch / parts, .sequence = spec.sequence / context};
  work.tensor_parallel = mesh_of(grid, place.pipeline).tensor;
  const int sharers = expert_tensor_ranks(spec.grid);
  work.sequence_parallel = spec.sequence_parallel && work.tensor_parallel > 1;
  return {.layers = spec.stage_layers[stage],
          .tensor = {.ranks = work.tensor_parallel, .rank = place.tensor},
          .tensor_group = groups.tensor(rank),
          .context = {spec.grid.context, place.context, spec.context_attention},
          .context_group = groups.context(rank),
          .experts = {.ranks = spec.grid.expert,
                      .rank = groups.expert(rank).member,
                      .tensor = {.ranks = sharers, .rank = place.tensor % sharers}},
          .expert_group = groups.expert(rank),
          .first_layer = training.first_layer[stage],
          .is_tied = has_tied_head(spec),
          .work = work,
          .slices = training.replay.slices,
          .microbatches = microbatches,
          .first_sample = place.data / parts * microbatches * spec.microbatch + place.data % parts * work.microbatch,
          .sample_stride = spec.microbatch,
          .half = spec.half,
          .optimizer = spec.optimizer,
          .is_optimizer_on_host = spec.offload_optimizer,
          .seed = spec.seed,
          .gradient_scales = gradient_scales_of(spec, training),
          .steps = static_cast<int>(training.batches.sizes.size()),
          .rebuild = stage_rebuild(spec, stage),
          .kept_microbatches = kept_microbatches(spec, stage),
          .agrees = agrees_on_steps(spec),
          .clip_norm = static_cast<float>(spec.clip_norm),
          .shares = {.copies = groups.copies(rank, static_cast<int>(stage)),
                     .zero = spec.zero,
                     .shard_by = spec.shard_by,
                     .is_half = spec.half.has_value(),
                     .bucket_layers = training.bucket_layers[stage],
                     .layerwise = spec.layerwise},
          .expert_copies = groups.expert_copies(rank, static_cast<int>(stage)),
          .resume = spec.resume.get()};
}

}  // namespace

DeviceStages::DeviceStages(const RunSpec& spec, const TrainingPlan& training, const DeviceWorld& world,
                           const DeviceGroupTable& groups, std::int64_t update_window_bytes)
    : world_(world), schedule_(training.replay.schedule) {
  for (int lane = 0; lane < world.lanes(); ++lane)
    for (std::size_t stage = 0; stage < spec.stage_layers.size(); ++stage) {
      DeviceStageOptions options =
          options_of(spec, training, groups, world.place(schedule_.stages[stage].rank, lane), stage);
      options.update_window_bytes = update_window_bytes;
      stages_.emplace_back(options);
    }
}

bool has_tied_head(const RunSpec& spec) {
  for (const std::vector<Layer>& layers : spec.stage_layers)
    for (const Layer& layer : layers)
      if (const auto* head = std::get_if<HeadLayer>(&layer); head != nullptr && head->tied) return true;
  return false;
}

bool agrees_on_steps(const RunSpec& spec) {
  return spec.clip_norm > 0 || spec.half == HalfFormat::kFp16;
}

}}  // namespace plumb::executor
