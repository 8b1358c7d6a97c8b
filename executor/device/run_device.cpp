#include "executor/device/run_device.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "executor/device/device_run.h"
#include "executor/training/training_state.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

/// FLOPs of a stage's passes: they decide which lifetimes are expected, and in which order calls are enqueued.
Seconds flops_of(const std::vector<Layer>& layers, const LayerWork& work, Pass pass) {
  double flops = 0;
  for (const Layer& layer : layers)
    for (const KernelCall& kernel : layer_kernels(layer, work, pass)) flops += kernel.flops;
  return Seconds{1e-12 * flops};
}

/// A GPU does so many FLOPs while a byte goes to the host (400 TFLOP/s, 50 GB/s), or to another place in its memory.
constexpr double kFlopsOfHostByte = 8000, kFlopsOfDeviceByte = 300;

/// A move is taken to be hidden by the forward beside it: one that lasts longer holds up who waits for its place,
/// rather than asking for more of them.
void guess_moves(StageCosts& costs, Seconds forward) {
  const auto guess = [&](Op op, double flops_of_byte) {
    const Seconds copy{1e-12 * flops_of_byte * static_cast<double>(costs.memory.forward_bytes)};
    costs.segments[static_cast<std::size_t>(op)] = {{{.seconds = std::min(copy, forward)}}};
  };
  for (const Op op : {Op::kOffload, Op::kReload}) guess(op, kFlopsOfHostByte);
  for (const Op op : {Op::kEvict, Op::kLoad}) guess(op, kFlopsOfDeviceByte);
}

bool has_tied_head(const RunSpec& spec) {
  for (const std::vector<Layer>& layers : spec.stage_layers)
    for (const Layer& layer : layers)
      if (const auto* head = std::get_if<HeadLayer>(&layer); head != nullptr && head->tied) return true;
  return false;
}

/// In which passes copies of a stage exchange.
JointPasses joint_passes(const RunSpec& spec) {
  if (!spec.layerwise || spec.zero < 2) return JointPasses::kNone;
  return spec.zero == 2 ? JointPasses::kWeightGrads : JointPasses::kAll;
}

LossScale first_loss_scale(const RunSpec& spec) {
  if (spec.resume != nullptr) return spec.resume->loss_scale;
  return {.scale = spec.half == HalfFormat::kFp16 ? kFirstFp16LossScale : 1};
}

}  // namespace

DeviceRun::DeviceRun(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options,
                     std::optional<int> own_rank)
    : spec_(spec),
      options_(options),
      machine_(machine),
      training_(plan_training(spec)),
      world_(training_, own_rank),
      groups_(training_),
      work_{.microbatch = spec.microbatch, .sequence = spec.sequence / std::max(1, spec.grid.context)},
      schedule_(training_.replay.schedule),
      is_tied_(has_tied_head(spec)),
      agrees_(spec.clip_norm > 0 || spec.half == HalfFormat::kFp16),
      waits_for_all_(agrees_ || is_tied_),
      loss_scale_(first_loss_scale(spec)) {
  require_joint_step();
  make_stages();
  std::vector<DeviceStageBytes> stage_bytes;
  MicrobatchMemory of_microbatches;
  for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage) {
    const DeviceStage& first = lane_stages(0)[stage];
    std::int64_t update = 0;  // shares by layer differ
    for (int lane = 0; lane < world_.lanes(); ++lane)
      update = std::max(update, lane_stages(lane)[stage].update_workspace_bytes());
    stage_bytes.push_back({.whole_gradients = first.whole_gradient_bytes(),
                           .update_workspace = update,
                           .sequences = first.sequence_bytes(),
                           .sequence_gradients = first.sequence_gradient_bytes()});
    of_microbatches.push_back(first.microbatch_memory());
  }
  const JointPasses passes = joint_passes(spec);
  std::vector<MessagePair> pairs;  // ranks that share a device have no calls of NCCL
  if (own_rank) pairs = message_pairs(schedule_, training_.replay.grid);
  program_ =
      plan_device(schedule_, costs(), waits_for_all_, DeviceWaits::kAll, stage_bytes, of_microbatches, passes, pairs);
  calls_ = placed_calls(program_, schedule_, passes);
  joint_step_ = find_joint_step();
  require_memory();
  for_each_stage([&](int, DeviceStage& stage) { stage.settle(machine_, options.capture_gradients); });
  allocate_measures();
  allocate_tied_tables();
  for (int lane = 0; lane < world_.lanes(); ++lane)
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
      arenas_.push_back(is_here(rank, lane) ? machine_.allocate(program_.arena_bytes[rank]) : nullptr);
  allocate_hosts();
  record();
  machine_.prepare(world_.is_one_rank() ? 1 : world_.ranks(), recorded_->world().calls.size());
  if (own_rank) machine_.join({.communicators = groups_.take(), .rank = *own_rank, .ranks = world_.ranks()});
}

DeviceRankResult DeviceRun::run_rank(int rank) {
  DeviceRankResult result;
  std::vector<RankOutcome> ranks = train(result.gradients);
  result.outcome = std::move(ranks[static_cast<std::size_t>(rank)]);
  if (options_.capture_weights) result.weights = weights();
  return result;
}

RunResult DeviceRun::run() {
  std::vector<ModelValues> gradients;
  RunResult result = run_result(spec_, training_, train(gradients));
  result.gradients = std::move(gradients);
  if (options_.capture_weights) result.weights = weights();
  return result;
}

std::vector<RankOutcome> DeviceRun::train(std::vector<ModelValues>& gradients) {
  std::vector<RankOutcome> ranks(static_cast<std::size_t>(world_.ranks()));
  int step = training_.first_step, saved = spec_.resume != nullptr ? step : -1;
  for (; step < spec_.steps; ++step) {
    if (options_.ends && options_.ends()) break;
    upload_batch(step);
    for_each_stage(
        [&](int, DeviceStage& stage) { stage.begin_step(machine_, step, static_cast<float>(loss_scale_.scale)); });
    if (!machine_.keeps_replay()) recorded_->enqueue(machine_, spec_.half ? 2 : 4);
    note(ranks, machine_.finish());
    end_step(ranks);
    for (int k = 0; options_.capture_gradients && k < batches(); ++k) {
      gradients.push_back(room_for_values(spec_, training_.first_layer));
      for_each_stage([&](int, DeviceStage& stage) { stage.copy_gradients(machine_, gradients.back(), k); });
    }
    if (options_.checkpoint_every == 0 || (step + 1) % options_.checkpoint_every != 0) continue;
    saved = step + 1;
    save(saved);
  }
  if (options_.checkpoint_every > 0 && saved != step) save(step);
  for_each_stage([&](int rank, const DeviceStage& stage) {
    const StageMemory held = stage.memory();
    ParameterBytes& bytes = ranks[static_cast<std::size_t>(rank)].parameter_bytes;
    bytes = bytes + ParameterBytes{.weights = held.parameter_bytes,
                                   .gradients = held.gradient_bytes,
                                   .optimizer = stage.optimizer_bytes()};
    ranks[static_cast<std::size_t>(rank)].peak_host_bytes += stage.host_bytes();
  });
  for (int lane = 0; lane < world_.lanes(); ++lane)
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      if (!is_here(rank, lane)) continue;
      outcome(ranks, rank, lane).peak_memory_bytes = taken_bytes(rank);
      outcome(ranks, rank, lane).peak_host_bytes += program_.host_bytes[rank];
    }
  return ranks;
}

void DeviceRun::save(int steps) {
  TrainingState state = room_for_state(spec_);
  state.steps = steps;
  state.loss_scale = loss_scale_;
  for_each_stage([&](int, const DeviceStage& stage) { stage.save(machine_, state); });
  options_.checkpoint(state);
}

ModelValues DeviceRun::weights() {
  ModelValues weights = room_for_values(spec_, training_.first_layer);
  for_each_stage([&](int, const DeviceStage& stage) { stage.copy_weights(machine_, weights); });
  return weights;
}

void DeviceRun::make_stages() {
  std::vector<float> gradient_scales;  // [micro-batch]
  for (const int batch : training_.batches.batch_of)
    gradient_scales.push_back(
        static_cast<float>(1.0 / static_cast<double>(batch_tokens(spec_, training_, static_cast<std::size_t>(batch)))));
  for (int lane = 0; lane < world_.lanes(); ++lane)
    for (std::size_t stage = 0; stage < spec_.stage_layers.size(); ++stage) {
      const RankGrid& grid = training_.replay.grid;
      const GridCoordinates place = world_.place(schedule_.stages[stage].rank, lane);
      const int rank = world_rank_of(grid, place), parts = std::max(1, parts_of_microbatch(grid, place.pipeline));
      LayerWork work = work_;
      work.microbatch /= parts;
      work.tensor_parallel = mesh_of(grid, place.pipeline).tensor;
      work.sequence_parallel = spec_.sequence_parallel && work.tensor_parallel > 1;
      stages_.emplace_back(DeviceStageOptions{
          .layers = spec_.stage_layers[stage],
          .tensor = {.ranks = work.tensor_parallel, .rank = place.tensor},
          .tensor_group = groups_.tensor(rank),
          .context = context_seat(place),
          .context_group = groups_.context(rank),
          .experts = {.ranks = spec_.grid.expert, .rank = groups_.expert(rank).member},
          .expert_group = groups_.expert(rank),
          .first_layer = training_.first_layer[stage],
          .is_tied = is_tied_,
          .work = work,
          .slices = training_.replay.slices,
          .microbatches = schedule_.microbatches,
          .first_sample =
              place.data / parts * schedule_.microbatches * spec_.microbatch + place.data % parts * work.microbatch,
          .sample_stride = spec_.microbatch,
          .half = spec_.half,
          .optimizer = spec_.optimizer,
          .is_optimizer_on_host = spec_.offload_optimizer,
          .update_window_bytes = options_.update_window_bytes,
          .seed = spec_.seed,
          .gradient_scales = gradient_scales,
          .steps = batches(),
          .rebuild = stage_rebuild(spec_, stage),
          .kept_microbatches = kept_microbatches(spec_, stage),
          .agrees = agrees_,
          .clip_norm = static_cast<float>(spec_.clip_norm),
          .shares = {.copies = groups_.copies(rank, static_cast<int>(stage)),
                     .zero = spec_.zero,
                     .shard_by = spec_.shard_by,
                     .is_half = spec_.half.has_value(),
                     .bucket_layers = training_.bucket_layers[stage],
                     .layerwise = spec_.layerwise},
          .expert_copies = groups_.expert_copies(rank, static_cast<int>(stage)),
          .resume = spec_.resume.get()});
    }
}

CostTable DeviceRun::costs() const {
  ChunkCosts chunk{.forward = {}, .input_grad = {}, .weight_grad = {}};
  for (const std::vector<Layer>& layers : spec_.stage_layers) {
    chunk.forward.push_back(flops_of(layers, work_, Pass::kForward));
    chunk.input_grad.push_back(flops_of(layers, work_, Pass::kInputGrad));
    chunk.weight_grad.push_back(flops_of(layers, work_, Pass::kWeightGrad));
  }
  const std::span<const DeviceStage> stages = lane_stages(0);
  CostTable costs = chunk_cost_table(static_cast<int>(stages.size()), chunk);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    costs.stages[stage].memory = stages[stage].memory();
    costs.stages[stage].memory.parameter_bytes = stages[stage].version_bytes();
    costs.stages[stage].activation_message_bytes = stages[stage].output_bytes();
    costs.stages[stage].gradient_message_bytes = stages[stage].input_bytes();
    guess_moves(costs.stages[stage], chunk.forward[stage]);
  }
  return costs;
}

std::int64_t DeviceRun::taken_bytes(std::size_t rank) const {
  std::int64_t bytes = program_.arena_bytes[rank] + measure_bytes(rank) + whole_table_bytes(rank);
  for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage)
    if (static_cast<std::size_t>(schedule_.stages[stage].rank) == rank) bytes += lane_stages(0)[stage].held_bytes();
  return bytes;
}

void DeviceRun::require_memory() {
  std::int64_t held = 0, arenas = 0;
  for_each_stage([&](int, const DeviceStage& stage) { held += stage.held_bytes(); });
  for (int lane = 0; lane < world_.lanes(); ++lane)
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
      if (is_here(rank, lane)) arenas += program_.arena_bytes[rank] + measure_bytes(rank) + whole_table_bytes(rank);
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

void DeviceRun::allocate_hosts() {
  for (int lane = 0; lane < world_.lanes(); ++lane)
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      const std::int64_t bytes = program_.host_bytes[rank];
      hosts_.push_back(bytes > 0 && is_here(rank, lane) ? machine_.allocate_on_host(bytes) : nullptr);
    }
}

void DeviceRun::end_step(std::vector<RankOutcome>& ranks) {
  StepNumbers numbers;
  for_each_stage([&](int, DeviceStage& stage) { numbers = stage.end_step(machine_); });
  if (!agrees_) return;
  if (numbers.skips != 0)
    for (RankOutcome& rank : ranks) ++rank.skipped_steps;
  if (spec_.half == HalfFormat::kFp16)
    loss_scale_ = next_loss_scale(loss_scale_, {.square_sum = numbers.square_sum, .overflows = numbers.skips != 0});
}

RunResult run_device(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options) {
  require_device_runnable(spec);
  return DeviceRun(spec, machine, options, std::nullopt).run();
}

DeviceRankResult run_device_rank(const RunSpec& spec, int world_rank, DeviceMachine& machine,
                                 const DeviceRunOptions& options) {
  require_device_runnable(spec);
  for (const std::vector<Action>& actions : spec.schedule.ranks)
    if (std::ranges::count(actions, Op::kEvict, &Action::op) > 0)
      throw SpecError(
          "ranks on devices of their own have no place in each other's memory for activations that are evicted: take "
          "a schedule without EVICT (1f1b, say), run all ranks on one device, or use --backend cpu");
  if (options.checkpoint_every > 0)
    throw SpecError(
        "ranks on devices of their own write no checkpoints yet: leave --checkpoint-dir away, or use "
        "--backend cpu");
  return DeviceRun(spec, machine, options, world_rank).run_rank(world_rank);
}

}}  // namespace plumb::executor
