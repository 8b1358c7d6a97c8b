#include "executor/training/device/device_run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "executor/groups/message_pairs.h"
#include "executor/parameters/training_state.h"
#include "executor/program/device/plan_device.h"
#include "executor/training/device/device_batch.h"
#include "executor/training/device/device_costs.h"
#include "executor/training/device/record_calls.h"
#include "executor/training/device/replay_outcome.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns the passes in which copies of a stage exchange.
JointPasses joint_passes(const RunSpec& spec) {
  if (!spec.layerwise || spec.zero < 2) return JointPasses::kNone;
  return spec.zero == 2 ? JointPasses::kWeightGrads : JointPasses::kAll;
}

LossScale first_loss_scale(const RunSpec& spec) {
  if (spec.resume != nullptr) return spec.resume->loss_scale;
  return {.scale = spec.half == HalfFormat::kFp16 ? kFirstFp16LossScale : 1};
}

/// Returns the spec's plan where ranks can do together what they have to before their first steps.
TrainingPlan checked_plan(const RunSpec& spec) {
  TrainingPlan plan = plan_training(spec);
  if (agrees_on_steps(spec) || has_tied_head(spec)) require_joint_step(plan.replay.schedule);
  return plan;
}

}  // namespace

DeviceRun::DeviceRun(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options,
                     std::optional<int> own_rank)
    : spec_(spec),
      options_(options),
      machine_(machine),
      training_(checked_plan(spec)),
      schedule_(training_.replay.schedule),
      world_(training_, own_rank),
      groups_(training_.replay),
      agrees_(agrees_on_steps(spec)),
      waits_for_all_(agrees_ || has_tied_head(spec)),
      loss_scale_(first_loss_scale(spec)),
      stages_(spec, training_, world_, groups_, options.update_window_bytes),
      program_(planned_program(own_rank.has_value())),
      calls_(placed_calls(program_, schedule_, joint_passes(spec))),
      joint_(training_, world_, groups_, stages_, agrees_) {
  require_memory();
  stages_.for_each_here([&](int, DeviceStage& stage) { stage.settle(machine_, options.capture_gradients); });
  joint_.allocate(machine_);
  arenas_.emplace(machine_, program_, world_);
  const RecordingInputs inputs{.training = training_,
                               .world = world_,
                               .stages = stages_,
                               .program = program_,
                               .calls = calls_,
                               .arenas = *arenas_,
                               .joint = joint_,
                               .joint_call = waits_for_all_ ? joint_.find(calls_) : std::nullopt};
  recorded_.emplace(record_calls(inputs, groups_));
  std::vector<DeviceLane> lanes = lanes_of(recorded_->world());
  if (own_rank)
    for (DeviceLane& lane : lanes) lane.rank = 0;
  machine_.prepare(lanes, recorded_->world().calls.size());
  if (own_rank) machine_.join({.communicators = groups_.take(), .rank = *own_rank, .ranks = world_.ranks()});
}

DeviceProgram DeviceRun::planned_program(bool is_alone) const {
  std::vector<DeviceStageBytes> stage_bytes;
  MicrobatchMemory of_microbatches;
  for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage) {
    const DeviceStage& first = stages_.at(0, stage);
    std::int64_t update = 0;  // shares by layer differ
    for (int lane = 0; lane < world_.lanes(); ++lane)
      update = std::max(update, stages_.at(lane, stage).parameters().update_workspace_bytes());
    stage_bytes.push_back({.whole_gradients = first.parameters().whole_gradient_bytes(),
                           .update_workspace = update,
                           .sequences = first.slices().sequence_bytes(),
                           .sequence_gradients = first.slices().sequence_gradient_bytes()});
    of_microbatches.push_back(first.microbatch_memory());
  }
  std::vector<MessagePair> pairs;  // ranks that share a device have no calls of NCCL
  if (is_alone) pairs = message_pairs(schedule_, training_.replay.grid);
  return plan_device(schedule_, device_costs(spec_, stages_), waits_for_all_, DeviceWaits::kAll, stage_bytes,
                     of_microbatches, joint_passes(spec_), pairs);
}

/// Calls visit(pipeline rank, world rank) for the ranks that are here.
template <class Visit>
void DeviceRun::for_each_rank(Visit visit) const {
  for (int lane = 0; lane < world_.lanes(); ++lane)
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
      if (const int world_rank = world_.rank_of(static_cast<int>(rank), lane); world_.is_here(world_rank))
        visit(rank, world_rank);
}

DeviceRankResult DeviceRun::run_rank(int rank) {
  Trained trained = train();
  DeviceRankResult result;
  result.gradients = std::move(trained.gradients);
  result.outcome = std::move(trained.ranks[static_cast<std::size_t>(rank)]);
  if (options_.capture_weights) result.weights = weights();
  return result;
}

RunResult DeviceRun::run() {
  Trained trained = train();
  RunResult result = run_result(spec_, training_, std::move(trained.ranks));
  result.gradients = std::move(trained.gradients);
  if (options_.capture_weights) result.weights = weights();
  return result;
}

DeviceRun::Trained DeviceRun::train() {
  Trained trained;
  trained.ranks.resize(static_cast<std::size_t>(world_.ranks()));
  int step = training_.first_step, saved = spec_.resume != nullptr ? step : -1;
  for (; step < spec_.steps; ++step) {
    if (options_.ends && options_.ends()) break;
    run_replay(trained.ranks, step);
    end_step(trained.ranks);
    for (int k = 0; options_.capture_gradients && k < static_cast<int>(training_.batches.sizes.size()); ++k) {
      ModelValues& gradients = trained.gradients.emplace_back(room_for_values(spec_, training_.first_layer));
      stages_.for_each_here([&](int, DeviceStage& stage) { stage.copy_gradients(machine_, gradients, k); });
    }
    if (options_.checkpoint_every == 0 || (step + 1) % options_.checkpoint_every != 0) continue;
    saved = step + 1;
    save(saved);
  }
  if (options_.checkpoint_every > 0 && saved != step) save(step);
  add_bytes(trained.ranks);
  return trained;
}

void DeviceRun::run_replay(std::vector<RankOutcome>& ranks, int step) {
  stages_.for_each_here(
      [&](int rank, DeviceStage& stage) { upload_batch(machine_, stage.data(), spec_, training_, rank, step); });
  stages_.for_each_here(
      [&](int, DeviceStage& stage) { stage.begin_step(machine_, step, static_cast<float>(loss_scale_.scale)); });
  if (!machine_.keeps_replay()) recorded_->enqueue(machine_, spec_.half ? 2 : 4);
  const ReplayInputs inputs{
      .training = training_, .world = world_, .stages = stages_, .calls = calls_, .recorded = *recorded_};
  for (RankReplay& replay : replay_outcomes(inputs, machine_, machine_.finish())) {
    const int pipeline = coordinates_of(training_.replay.grid, replay.rank).pipeline;
    replay.timeline.memory = {{.bytes = taken_bytes(static_cast<std::size_t>(pipeline))}};
    RankOutcome& of = ranks[static_cast<std::size_t>(replay.rank)];
    of.timelines.push_back(std::move(replay.timeline));
    of.ends.push_back(replay.end);
    of.losses.push_back(std::move(replay.losses));
    of.balance_losses.push_back(std::move(replay.balance_losses));
    of.loss_scales.push_back(loss_scale_.scale);
  }
}

/// The step has done the same on every stage.
void DeviceRun::end_step(std::vector<RankOutcome>& ranks) {
  StepNumbers numbers;
  stages_.for_each_here([&](int, DeviceStage& stage) { numbers = stage.end_step(machine_); });
  if (!agrees_) return;
  if (numbers.skips != 0)
    for (RankOutcome& rank : ranks) ++rank.skipped_steps;
  if (spec_.half == HalfFormat::kFp16)
    loss_scale_ = next_loss_scale(loss_scale_, {.square_sum = numbers.square_sum, .overflows = numbers.skips != 0});
}

void DeviceRun::add_bytes(std::vector<RankOutcome>& ranks) {
  stages_.for_each_here([&](int rank, const DeviceStage& stage) {
    const StageMemory held = stage.memory();
    ParameterBytes& bytes = ranks[static_cast<std::size_t>(rank)].parameter_bytes;
    bytes = bytes + ParameterBytes{.weights = held.parameter_bytes,
                                   .gradients = held.gradient_bytes,
                                   .optimizer = stage.parameters().optimizer_bytes()};
    ranks[static_cast<std::size_t>(rank)].peak_host_bytes += stage.parameters().host_bytes();
  });
  for_each_rank([&](std::size_t pipeline, int rank) {
    ranks[static_cast<std::size_t>(rank)].peak_memory_bytes = taken_bytes(pipeline);
    ranks[static_cast<std::size_t>(rank)].peak_host_bytes += program_.host_bytes[pipeline];
  });
}

void DeviceRun::save(int steps) {
  TrainingState state = room_for_state(spec_);
  state.steps = steps;
  state.loss_scale = loss_scale_;
  stages_.for_each_here([&](int, const DeviceStage& stage) { stage.save(machine_, state); });
  options_.checkpoint(state);
}

ModelValues DeviceRun::weights() {
  ModelValues weights = room_for_values(spec_, training_.first_layer);
  stages_.for_each_here([&](int, const DeviceStage& stage) { stage.parameters().copy_weights(machine_, weights); });
  return weights;
}

/// Bytes of all that a rank was given, which stays the same: its stages and its arena.
std::int64_t DeviceRun::taken_bytes(std::size_t rank) const {
  std::int64_t bytes = program_.arena_bytes[rank] + joint_.bytes(rank);
  for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage)
    if (static_cast<std::size_t>(schedule_.stages[stage].rank) == rank) bytes += stages_.at(0, stage).held_bytes();
  return bytes;
}

void DeviceRun::require_memory() {
  std::int64_t held = 0, arenas = 0;
  stages_.for_each_here([&](int, const DeviceStage& stage) { held += stage.held_bytes(); });
  for_each_rank([&](std::size_t pipeline, int) { arenas += program_.arena_bytes[pipeline] + joint_.bytes(pipeline); });
  arenas += machine_.own_bytes(world_.is_one_rank() ? 1 : world_.ranks());
  const std::int64_t there = machine_.free_bytes();
  if (held + arenas <= there) return;
  constexpr double kMiB = 1 << 20;
  throw RunError(
      fmt::format("the device has {:.0f} MiB free and the replay needs {:.0f}: {:.0f} MiB of weights, gradients and "
                  "optimizer state, {:.0f} MiB of activations, messages and workspace; take fewer micro-batches under "
                  "way, a smaller micro-batch or a smaller model",
                  static_cast<double>(there) / kMiB, static_cast<double>(held + arenas) / kMiB,
                  static_cast<double>(held) / kMiB, static_cast<double>(arenas) / kMiB));
}

}}  // namespace plumb::executor
