#pragma once
// A training on one device, from the spec to what comes of it: its stages, the plan of a replay, the recorded calls.

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "executor/device/device_stage.h"
#include "executor/device/device_world.h"
#include "executor/device/placed_calls.h"
#include "executor/device/recorded_program.h"
#include "executor/device/run_device.h"
#include "executor/device_plan/device_groups.h"
#include "executor/device_plan/plan_device.h"
#include "executor/training/step_scale.h"
#include "executor/training/training_plan.h"
#include "schedules/dependencies.h"

namespace plumb {

class DeviceRun {
 public:
  DeviceRun(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options, std::optional<int> own_rank);

  DeviceRankResult run_rank(int rank);

  RunResult run();

 private:
  /// [world rank] those that are here.
  std::vector<RankOutcome> train(std::vector<ModelValues>& gradients);

  bool is_checkpoint(int step) const;
  /// Behind so many steps.
  void save(int steps);
  ModelValues weights();

  // Who is where.

  bool is_here(std::size_t pipeline, int lane) const {
    return world_.is_here(world_.rank_of(static_cast<int>(pipeline), lane));
  }
  RankOutcome& outcome(std::vector<RankOutcome>& ranks, std::size_t pipeline, int lane) const {
    return ranks[static_cast<std::size_t>(world_.rank_of(static_cast<int>(pipeline), lane))];
  }
  std::span<DeviceStage> lane_stages(int lane) {
    const std::size_t each = schedule_.stages.size();
    return std::span(stages_).subspan(static_cast<std::size_t>(lane) * each, each);
  }
  std::span<const DeviceStage> lane_stages(int lane) const {
    const std::size_t each = schedule_.stages.size();
    return std::span(stages_).subspan(static_cast<std::size_t>(lane) * each, each);
  }
  /// Those that are here, with their world rank.
  template <class Visit>
  void for_each_stage(Visit visit) {
    for (int lane = 0; lane < world_.lanes(); ++lane)
      for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage) {
        const int rank = world_.rank_of(schedule_.stages[stage].rank, lane);
        if (world_.is_here(rank)) visit(rank, lane_stages(lane)[stage]);
      }
  }

  void make_stages();
  CostTable costs() const;
  /// All that a rank was given, which stays the same: its stages and its arena.
  std::int64_t taken_bytes(std::size_t rank) const;
  void require_memory();
  void upload_batch(int step);
  void upload_batch(int step, int lane);
  /// Addresses stay the same: each call is recorded once.
  void record();
  void record_call(std::size_t index, int lane);
  /// A message between machines: the end of it that is here, if one is.
  void record_message(std::size_t index, int lane);
  void perform(CallRecorder& kernels, const PlacedAction& placed, std::size_t call, std::int32_t id, int lane);
  /// Whether a REDUCE_GRAD sums a bucket: where several stand before one step, the last of them does.
  bool is_reduced_here(std::int32_t id) const;
  bool completes_gradients(const DeviceCall& call, std::size_t actions) const;
  /// Of one lane, which has all ranks.
  void complete_gradients(CallRecorder& kernels, int rank);
  /// Optimizer steps of a replay.
  int batches() const { return static_cast<int>(training_.batches.sizes.size()); }
  std::int64_t partial_count() const { return static_cast<std::int64_t>(stages_.size()) * DeviceStage::kPartials; }
  std::int64_t tied_elements() const {
    std::int64_t elements = 0;
    for (const DeviceStage& stage : stages_) elements = std::max(elements, stage.tied_elements());
    return elements;
  }
  /// Of what belongs to no rank: partial sums, and a tied table's gradients.
  std::int64_t common_bytes() const {
    return ((agrees_ ? partial_count() : 0) + 2 * tied_elements()) * std::int64_t{sizeof(float)};
  }
  void allocate_common();
  /// What the step did, the same on every stage.
  void end_step(std::vector<RankOutcome>& ranks);

  std::byte* address(ArenaPlace place, int lane) const {
    if (place.rank < 0) return nullptr;
    std::byte* arena =
        arenas_[static_cast<std::size_t>(lane) * schedule_.ranks.size() + static_cast<std::size_t>(place.rank)];
    return arena == nullptr ? nullptr : arena + place.offset;
  }

  /// The ranks' timelines of a replay, in the order of their lists, and the losses.
  void note(std::vector<RankOutcome>& ranks, const std::vector<CallTimes>& of_world_calls);
  void note_losses(std::vector<RankOutcome>& ranks, int lane);
  /// A RECV has the times of its message's copy.
  std::vector<CallTimes> times_of_actions(const std::vector<std::vector<CallTimes>>& times, int lane) const;

  const RunSpec& spec_;
  const DeviceRunOptions options_;
  DeviceMachine& machine_;
  const TrainingPlan training_;
  const DeviceWorld world_;
  DeviceGroupTable groups_;
  const LayerWork work_;
  const Schedule& schedule_;
  const bool is_tied_;
  const bool agrees_;         // what the optimizer does depends on all stages' gradients
  const bool waits_for_all_;  // on those, or on the other end's of a table
  LossScale loss_scale_;
  const std::vector<std::int32_t> last_gradients_;  // [rank] action
  const ActionIds ids_ = action_ids(schedule_);
  std::vector<DeviceStage> stages_;  // [lane, stage]
  DeviceProgram program_;
  std::vector<std::vector<PlacedAction>> calls_;
  std::set<std::int32_t> hosts_of_buckets_;  // calls inside which a reduction starts
  std::optional<RecordedProgram> recorded_;
  std::vector<std::byte*> arenas_;  // [lane, rank]; null for those that are not here
  float* partials_ = nullptr;       // [stage, kPartials]
  DeviceTiedTable tied_;
};

}  // namespace plumb
