#pragma once
// A training on one device, from the spec to what comes of it: its stages, the plan of a replay, the recorded calls.

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "executor/device/calls/placed_calls.h"
#include "executor/device/calls/recorded_program.h"
#include "executor/device/device_world.h"
#include "executor/device/run_device.h"
#include "executor/device/stage/device_stage.h"
#include "executor/device_plan/device_groups.h"
#include "executor/device_plan/plan_device.h"
#include "executor/division/resharding_pieces.h"
#include "executor/training/step_scale.h"
#include "executor/training/training_plan.h"
#include "schedules/dependencies/dependencies.h"

namespace plumb { inline namespace executor {

class DeviceRun {
 public:
  DeviceRun(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options, std::optional<int> own_rank);

  DeviceRankResult run_rank(int rank);

  RunResult run();

 private:
  /// [world rank] those that are here.
  std::vector<RankOutcome> train(std::vector<ModelValues>& gradients);

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

  ContextSeat context_seat(const GridCoordinates& place) const {
    return {spec_.grid.context, place.context, spec_.context_attention};
  }

  void make_stages();
  CostTable costs() const;
  /// All that a rank was given, which stays the same: its stages and its arena.
  std::int64_t taken_bytes(std::size_t rank) const;
  void require_memory();
  /// What OFFLOADs fill.
  void allocate_hosts();
  void upload_batch(int step);
  void upload_batch(int step, int rank, const DeviceStage& stage) const;
  /// Addresses stay the same: each call is recorded once.
  void record();
  /// On all ranks that are here: one of the pipeline, or those of copies of a stage that do something together.
  void record_call(std::size_t index);

  // Messages (device_run_messages.cpp).
  struct Message {
    MessageKind kind = MessageKind::kActivation;
    int from = 0, to = 0;    // pipeline ranks
    std::int64_t words = 0;  // of 4 bytes, that reach a rank
  };
  struct MessagePiece {
    int source = 0, destination = 0;  // ranks of the world
    std::int64_t from = 0, to = 0;    // its first word in what either end has
    std::int64_t words = 0;
  };
  Message message_of(const PlacedAction& send) const;
  std::int64_t incoming_words(int stage, int slice, bool forward) const;
  MeshTensor mesh_tensor(int pipeline) const;
  bool are_like_meshes(int one, int other) const;
  int first_rank(int pipeline) const;
  /// In one order on all ranks; between any two there is one at most.
  std::vector<MessagePiece> message_pieces(const Message& message) const;
  /// Between ranks that share a device.
  void send_here(CallRecorder& kernels, const PlacedAction& send, int lane) const;
  /// Between machines: the ends of it that are here.
  void record_message(std::size_t index);
  /// What the tensor ranks of a stage give each other before they take a message.
  void complete_message(CallRecorder& recorder, const PlacedAction& taker, int lane) const;

  /// Activations of a micro-batch between their places and those where they are away.
  void move(CallRecorder& kernels, const PlacedAction& placed, int lane) const;
  void perform(CallRecorder& kernels, const PlacedAction& placed, std::size_t call, int lane);
  /// Whether a REDUCE_GRAD sums a bucket: where several stand before one step, the last of them does.
  bool is_reduced_here(std::int32_t id) const;
  /// Optimizer steps of a replay.
  int batches() const { return static_cast<int>(training_.batches.sizes.size()); }

  // What ranks do together before their first OPTIMIZER_STEPs: both ends of a tied table sum its gradient, and where
  // the step depends on all gradients all ranks measure them. It stands in the first of these calls, of which the
  // others then have a part, too (joint_step.cpp).

  void require_joint_step() const;
  std::optional<std::size_t> find_joint_step() const;
  bool is_tied_end(int stage) const;
  bool joins(std::size_t pipeline) const;
  std::int64_t measure_bytes(std::size_t pipeline) const;
  std::int64_t most_partials(std::size_t stage) const;
  bool is_between_meshes(const TiedStages& pair) const;
  void allocate_tied_tables();
  std::int64_t whole_table_bytes(std::size_t pipeline) const;
  void sum_between_meshes(CallRecorder& sums, std::size_t pair, std::size_t pipeline, int lane) const;
  void allocate_measures();
  /// By phase: in each, all ranks have as many pieces.
  std::vector<std::vector<RecordedPiece>> joint_step(std::size_t pipeline, int lane);
  void record_joint_step(std::size_t index);
  StepNumbers* measure(std::size_t pipeline, int lane) const {
    return measures_.empty() ? nullptr : measures_[static_cast<std::size_t>(lane) * schedule_.ranks.size() + pipeline];
  }

  /// What the step did, the same on every stage.
  void end_step(std::vector<RankOutcome>& ranks);

  std::byte* address(ArenaPlace place, int lane) const {
    if (place.rank < 0) return nullptr;
    std::byte* arena =
        (place.on_host
             ? hosts_
             : arenas_)[static_cast<std::size_t>(lane) * schedule_.ranks.size() + static_cast<std::size_t>(place.rank)];
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
  const ActionIds ids_ = action_ids(schedule_);
  std::vector<DeviceStage> stages_;  // [lane, stage]
  DeviceProgram program_;
  std::vector<std::vector<PlacedAction>> calls_;
  std::set<std::int32_t> hosts_of_buckets_;  // calls inside which a reduction starts
  std::optional<RecordedProgram> recorded_;
  std::vector<std::byte*> arenas_;         // [lane, rank]; null for those that are not here
  std::vector<std::byte*> hosts_;          // likewise of the host's memory; null, too, for those that need none
  std::optional<std::size_t> joint_step_;  // the call; none: nothing is done together
  std::vector<float*> whole_tables_;       // [lane, rank] of tied tables whose ends are on meshes of different shape
  std::vector<StepNumbers*> measures_;     // [lane, rank] where all agree: what its gradients measure, then all ranks';
                                           // behind it partial sums
};

}}  // namespace plumb::executor
