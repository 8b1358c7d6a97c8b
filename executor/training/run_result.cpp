#include "executor/training/run_result.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "traces/draw/timeline_title.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns the mean losses of one replay, [optimizer step]; `kind` says which losses of each rank.
std::vector<double> mean_losses(const RunSpec& spec, const TrainingPlan& plan, const std::vector<RankOutcome>& ranks,
                                std::size_t replay, std::vector<std::vector<MicrobatchLoss>> RankOutcome::*kind) {
  const RankGrid& grid = plan.replay.grid;
  const int most = std::ranges::max(grid.meshes, {}, &StageMesh::data).data;
  const auto replicas = static_cast<std::size_t>(most * spec.grid.context);
  std::vector microbatches(replicas, std::vector<double>(plan.batches.batch_of.size()));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const GridCoordinates place = coordinates_of(grid, static_cast<int>(rank));
    for (const MicrobatchLoss& loss : (ranks[rank].*kind)[replay])
      microbatches[static_cast<std::size_t>(place.data * spec.grid.context + place.context)]
                  [static_cast<std::size_t>(loss.microbatch)] += loss.sum;
  }
  std::vector<double> means(plan.batches.sizes.size(), 0.0);
  for (const std::vector<double>& losses : microbatches)
    for (std::size_t i = 0; i < losses.size(); ++i)
      means[static_cast<std::size_t>(plan.batches.batch_of[i])] += losses[i];
  for (std::size_t batch = 0; batch < means.size(); ++batch)
    means[batch] /= static_cast<double>(batch_tokens(spec, plan, batch));
  return means;
}

}  // namespace

bool stands_for_its_pipeline_rank(const GridCoordinates& place) {
  return place.data == 0 && place.context == 0 && place.tensor == 0;
}

Timeline empty_timeline(const Schedule& schedule) {
  return {.source = Timeline::Source::kMeasured,
          .title = timeline_title(schedule),
          .microbatches = schedule.microbatches,
          .stages = schedule.stages,
          .ranks = std::vector<RankTimeline>(schedule.ranks.size())};
}

RunResult run_result(const RunSpec& spec, const TrainingPlan& plan, std::vector<RankOutcome> ranks) {
  const std::size_t replays = ranks.front().ends.size(), pipeline_ranks = spec.schedule.ranks.size();
  RunResult result{.first_step = plan.first_step,
                   .timelines = std::vector<Timeline>(replays, empty_timeline(plan.replay.schedule)),
                   .peak_memory_bytes = std::vector<std::int64_t>(pipeline_ranks),
                   .peak_host_bytes = std::vector<std::int64_t>(pipeline_ranks),
                   .loss_scales = ranks.front().loss_scales,
                   .skipped_steps = static_cast<int>(ranks.front().skipped_steps)};
  for (std::size_t replay = 0; replay < replays; ++replay) {
    std::ranges::copy(mean_losses(spec, plan, ranks, replay, &RankOutcome::losses), std::back_inserter(result.losses));
    std::ranges::copy(mean_losses(spec, plan, ranks, replay, &RankOutcome::balance_losses),
                      std::back_inserter(result.balance_losses));
    SimTime last{0};
    for (const RankOutcome& rank : ranks) last = std::max(last, rank.ends[replay]);
    result.step_seconds.push_back(to_seconds(last));
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    RankOutcome& outcome = ranks[rank];
    result.parameter_bytes.push_back(outcome.parameter_bytes);
    result.allocations.push_back(outcome.allocations);
    result.tensor_group_bytes.push_back(outcome.tensor_group_bytes);
    const GridCoordinates place = coordinates_of(plan.replay.grid, static_cast<int>(rank));
    if (!stands_for_its_pipeline_rank(place)) continue;
    const auto pipeline = static_cast<std::size_t>(place.pipeline);
    for (std::size_t replay = 0; replay < replays; ++replay)
      result.timelines[replay].ranks[pipeline] = std::move(outcome.timelines[replay]);
    result.peak_memory_bytes[pipeline] = outcome.peak_memory_bytes;
    result.peak_host_bytes[pipeline] = outcome.peak_host_bytes;
  }
  return result;
}

}}  // namespace plumb::executor
