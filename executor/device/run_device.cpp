#include "executor/device/run_device.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "executor/data/token_batch.h"
#include "executor/device/device_stage.h"
#include "executor/device/device_world.h"
#include "executor/device/placed_calls.h"
#include "executor/device/recorded_program.h"
#include "executor/device_plan/device_calls.h"
#include "executor/device_plan/device_groups.h"
#include "executor/device_plan/plan_device.h"
#include "executor/training/step_scale.h"
#include "executor/training/training_plan.h"
#include "executor/transport/transport.h"
#include "schedules/action_table.h"
#include "schedules/error.h"

namespace plumb {
namespace {

/// FLOPs of a stage's passes: they decide which lifetimes are expected, and in which order calls are enqueued.
Seconds flops_of(const std::vector<Layer>& layers, const LayerWork& work, Pass pass) {
  double flops = 0;
  for (const Layer& layer : layers)
    for (const KernelCall& kernel : layer_kernels(layer, work, pass)) flops += kernel.flops;
  return Seconds{1e-12 * flops};
}

bool has_tied_head(const RunSpec& spec) {
  for (const std::vector<Layer>& layers : spec.stage_layers)
    for (const Layer& layer : layers)
      if (const auto* head = std::get_if<HeadLayer>(&layer); head != nullptr && head->tied) return true;
  return false;
}

class DeviceRun {
 public:
  DeviceRun(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options, std::optional<int> own_rank)
      : spec_(spec),
        options_(options),
        machine_(machine),
        training_(plan_training(spec)),
        world_(training_, own_rank),
        groups_(training_),
        work_{.microbatch = spec.microbatch, .sequence = spec.sequence},
        schedule_(training_.replay.schedule),
        is_tied_(has_tied_head(spec)),
        agrees_(spec.clip_norm > 0 || spec.half == HalfFormat::kFp16),
        waits_for_all_(agrees_ || is_tied_),
        loss_scale_{.scale = spec.half == HalfFormat::kFp16 ? kFirstFp16LossScale : 1},
        last_gradients_(last_gradient_actions(schedule_)) {
    make_stages();
    std::vector<std::int64_t> whole_gradients;
    for (const DeviceStage& stage : lane_stages(0)) whole_gradients.push_back(stage.whole_gradient_bytes());
    program_ = plan_device(schedule_, costs(), waits_for_all_, DeviceWaits::kAll, whole_gradients);
    calls_ = placed_calls(program_, schedule_);
    require_memory();
    for_each_stage([&](int, DeviceStage& stage) { stage.settle(machine_, options.capture_gradients); });
    allocate_common();
    for (int lane = 0; lane < world_.lanes(); ++lane)
      for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
        arenas_.push_back(is_here(rank, lane) ? machine_.allocate(program_.arena_bytes[rank]) : nullptr);
    record();
    machine_.prepare(world_.is_one_rank() ? 1 : world_.ranks(), recorded_->world().calls.size());
    if (own_rank)
      machine_.join({.communicators = groups_.take(), .rank = *own_rank, .ranks = world_.ranks()});
  }

  DeviceRankResult run_rank(int rank) {
    DeviceRankResult result;
    std::vector<RankOutcome> ranks = train(result.gradients);
    result.outcome = std::move(ranks[static_cast<std::size_t>(rank)]);
    if (options_.capture_weights) result.weights = weights();
    return result;
  }

  RunResult run() {
    std::vector<ModelValues> gradients;
    RunResult result = run_result(spec_, training_, train(gradients));
    result.gradients = std::move(gradients);
    if (options_.capture_weights) result.weights = weights();
    return result;
  }

 private:
  /// [world rank] those that are here.
  std::vector<RankOutcome> train(std::vector<ModelValues>& gradients) {
    std::vector<RankOutcome> ranks(static_cast<std::size_t>(world_.ranks()));
    for (int step = 0; step < spec_.steps; ++step) {
      upload_batch(step);
      for_each_stage(
          [&](int, DeviceStage& stage) { stage.begin_step(machine_, static_cast<float>(loss_scale_.scale)); });
      if (!machine_.keeps_replay()) recorded_->enqueue(machine_, spec_.half ? 2 : 4);
      note(ranks, machine_.finish());
      end_step(ranks);
      for (int k = 0; options_.capture_gradients && k < batches(); ++k) {
        gradients.push_back(room_for_values(spec_, training_.first_layer));
        for_each_stage([&](int, DeviceStage& stage) { stage.copy_gradients(machine_, gradients.back(), k); });
      }
    }
    for_each_stage([&](int rank, const DeviceStage& stage) {
      const StageMemory held = stage.memory();
      ParameterBytes& bytes = ranks[static_cast<std::size_t>(rank)].parameter_bytes;
      bytes = bytes + ParameterBytes{.weights = held.parameter_bytes,
                                     .gradients = held.gradient_bytes,
                                     .optimizer = held.optimizer_bytes};
    });
    for (int lane = 0; lane < world_.lanes(); ++lane)
      for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
        outcome(ranks, rank, lane).peak_memory_bytes = taken_bytes(rank);
    return ranks;
  }

  ModelValues weights() {
    ModelValues weights = room_for_values(spec_, training_.first_layer);
    for_each_stage([&](int, const DeviceStage& stage) { stage.copy_weights(machine_, weights); });
    return weights;
  }

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

  void make_stages() {
    std::vector<float> gradient_scales;  // [micro-batch]
    for (const int batch : training_.batches.batch_of)
      gradient_scales.push_back(static_cast<float>(
          1.0 / static_cast<double>(batch_tokens(spec_, training_, static_cast<std::size_t>(batch)))));
    for (int lane = 0; lane < world_.lanes(); ++lane)
      for (std::size_t stage = 0; stage < spec_.stage_layers.size(); ++stage) {
        const int rank = world_.rank_of(schedule_.stages[stage].rank, lane);
        stages_.emplace_back(DeviceStageOptions{.layers = spec_.stage_layers[stage],
                                              .first_layer = training_.first_layer[stage],
                                              .is_tied = is_tied_,
                                              .work = work_,
                                              .microbatches = schedule_.microbatches,
                                              .half = spec_.half,
                                              .optimizer = std::get<AdamW>(spec_.optimizer),
                                              .seed = spec_.seed,
                                              .gradient_scales = gradient_scales,
                                              .steps = batches(),
                                              .rebuild = stage_rebuild(spec_, stage),
                                              .agrees = agrees_,
                                              .clip_norm = static_cast<float>(spec_.clip_norm),
                                              .shares = {.copies = groups_.copies(rank, static_cast<int>(stage)),
                                                         .zero = spec_.zero,
                                                         .shard_by = spec_.shard_by,
                                                         .is_half = spec_.half.has_value(),
                                                         .bucket_layers = training_.bucket_layers[stage]}});
      }
  }

  CostTable costs() const {
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
    }
    return costs;
  }

  /// All that a rank was given, which stays the same: its stages and its arena.
  std::int64_t taken_bytes(std::size_t rank) const {
    std::int64_t bytes = program_.arena_bytes[rank] + (rank == 0 ? common_bytes() : 0);
    for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage)
      if (static_cast<std::size_t>(schedule_.stages[stage].rank) == rank) bytes += lane_stages(0)[stage].held_bytes();
    return bytes;
  }

  void require_memory() {
    std::int64_t held = common_bytes(), arenas = 0;
    for_each_stage([&](int, const DeviceStage& stage) { held += stage.held_bytes(); });
    for (int lane = 0; lane < world_.lanes(); ++lane)
      for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
        if (is_here(rank, lane)) arenas += program_.arena_bytes[rank];
    const std::int64_t there = machine_.free_bytes();
    if (held + arenas <= there) return;
    constexpr double kMiB = 1 << 20;
    throw RunError(fmt::format(
        "the device has {:.0f} MiB free and the replay needs {:.0f}: {:.0f} MiB of weights, gradients and "
        "optimizer state, {:.0f} MiB of activations, messages and workspace; take fewer micro-batches under "
        "way, a smaller micro-batch or a smaller model",
        static_cast<double>(there) / kMiB, static_cast<double>(held + arenas) / kMiB, static_cast<double>(held) / kMiB,
        static_cast<double>(arenas) / kMiB));
  }

  void upload_batch(int step) {
    for (int lane = 0; lane < world_.lanes(); ++lane) upload_batch(step, lane);
  }

  void upload_batch(int step, int lane) {
    const std::size_t each = static_cast<std::size_t>(tokens_of(work_));
    std::vector<std::int32_t> inputs(each * static_cast<std::size_t>(schedule_.microbatches)), targets(inputs.size());
    const std::int64_t of_replica = schedule_.microbatches * spec_.microbatch;
    for (int i = 0; i < schedule_.microbatches; ++i) {
      const BatchPlace place{.seed = spec_.seed,
                             .step = step,
                             .first_sample = world_.lane(lane).data * of_replica + i * spec_.microbatch,
                             .count = spec_.microbatch,
                             .sequence = spec_.sequence};
      const std::size_t first = each * static_cast<std::size_t>(i);
      fill_inputs(std::span(inputs).subspan(first, each), spec_.text, place);
      fill_targets(std::span(targets).subspan(first, each), spec_.text, place);
    }
    for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage) {
      const DeviceStage& own = lane_stages(lane)[stage];
      if (!is_here(static_cast<std::size_t>(schedule_.stages[stage].rank), lane)) continue;
      if (own.reads_tokens()) own.upload_tokens(machine_, inputs);
      if (own.reads_targets()) own.upload_targets(machine_, targets);
    }
  }

  /// Addresses stay the same: each call is recorded once.
  void record() {
    recorded_.emplace(program_.calls.size(), world_.is_one_rank());
    for (const DeviceCall& call : program_.calls)
      for (const DeviceWait& wait : call.waits)
        if (wait.bucket != DeviceWait::kEnd) hosts_of_buckets_.insert(wait.call);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < program_.calls.size(); ++i) {
      const DeviceCall& call = program_.calls[i];
      names.push_back(to_text(calls_[i].front().action));
      const bool is_message = world_.is_one_rank() && is_send(calls_[i].front().action.op);
      for (int lane = 0; lane < world_.lanes(); ++lane) {
        if (is_message) {
          record_message(i, lane);
        } else if (is_here(static_cast<std::size_t>(call.rank), lane)) {
          record_call(i, lane);
        }
      }
    }
    recorded_->settle(program_, world_.ranks(), std::move(names));
  }

  void record_call(std::size_t index, int lane) {
    const DeviceCall& call = program_.calls[index];
    CallRecorder recorder;
    for (std::size_t k = 0; k < calls_[index].size(); ++k)
      perform(recorder, calls_[index][k], index, call.action + static_cast<std::int32_t>(k), lane);
    if (waits_for_all_ && completes_gradients(call, calls_[index].size())) complete_gradients(recorder, call.rank);
    recorded_->add(index, {.rank = world_.rank_of(call.rank, lane), .lane = lane, .stream = call.stream, .pieces = {}},
                   recorder.take());
  }

  /// A message between machines: the end of it that is here, if one is.
  void record_message(std::size_t index, int lane) {
    const PlacedAction& send = calls_[index].front();
    const bool forward = send.action.op == Op::kSendActivation;
    const int source = world_.rank_of(program_.calls[index].rank, lane);
    const int destination = world_.rank_of(send.outgoing.rank, lane);
    const DeviceStage& stage = lane_stages(lane)[static_cast<std::size_t>(send.action.stage)];
    DeviceExchange exchange{.communicator = groups_.channel(
                                forward ? MessageKind::kActivation : MessageKind::kGradient, source, destination),
                            .elements = ((forward ? stage.output_bytes() : stage.input_bytes()) + 3) / 4};
    const auto add = [&](int rank, DeviceStream stream) {
      CallRecorder recorder;
      recorder.exchange(exchange);
      recorded_->add(index, {.rank = rank, .lane = lane, .stream = stream, .pieces = {}}, recorder.take());
    };
    if (world_.is_here(source)) {
      exchange.kind = NcclKind::kSend;
      exchange.peer = 1;
      exchange.values = address(send.incoming, lane);
      add(source, program_.calls[index].stream);
    }
    if (world_.is_here(destination)) {
      exchange.kind = NcclKind::kReceive;
      exchange.member = 1;
      exchange.peer = 0;
      exchange.values = address(send.outgoing, lane);
      add(destination, forward ? DeviceStream::kReceiveActivation : DeviceStream::kReceiveGradient);
    }
  }

  void perform(CallRecorder& kernels, const PlacedAction& placed, std::size_t call, std::int32_t id, int lane) {
    const Action& action = placed.action;
    const DeviceStage& stage = lane_stages(lane)[static_cast<std::size_t>(action.stage)];
    std::byte* weights = address(placed.gathered.rank >= 0 ? placed.gathered : placed.weights, lane);
    const DevicePass pass{.microbatch = action.microbatch,
                          .early = address(placed.early, lane),
                          .late = address(placed.late, lane),
                          .rebuilt_early = address(placed.rebuilt_early, lane),
                          .rebuilt_late = address(placed.rebuilt_late, lane),
                          .workspace = address(placed.workspace, lane),
                          .incoming = address(placed.incoming, lane),
                          .outgoing = address(placed.outgoing, lane),
                          .weights = weights,
                          .whole_gradients = reinterpret_cast<float*>(address(placed.gradients, lane))};
    CallRecorder* buckets = hosts_of_buckets_.contains(static_cast<std::int32_t>(call)) ? &kernels : nullptr;
    if (placed.opens_gradients) stage.open_gradients(kernels, pass);
    switch (action.op) {
      case Op::kForward:
        return stage.forward(kernels, pass);
      case Op::kRecompute:
        return stage.recompute(kernels, pass);
      case Op::kBackward:
        return stage.backward(kernels, pass, placed.recomputes, buckets);
      case Op::kInputGrad:
        if (placed.recomputes) stage.recompute(kernels, pass);
        return stage.input_grad(kernels, pass);
      case Op::kWeightGrad:
        return stage.weight_grad(kernels, pass, buckets);
      case Op::kSendActivation:
        return kernels.copy(pass.outgoing, pass.incoming, stage.output_bytes());
      case Op::kSendGradient:
        return kernels.copy(pass.outgoing, pass.incoming, stage.input_bytes());
      case Op::kReduceGrad:
        if (is_reduced_here(id)) stage.reduce(kernels, pass, static_cast<std::size_t>(action.part));
        return;
      case Op::kUnshard:
        return stage.gather(kernels, weights);
      case Op::kOptimizerStep:
        return stage.optimizer_step(kernels, placed.step, weights, partials_, partial_count(), tied_);
      default:
        return;  // RESHARD: its place in the arena is free
    }
  }

  /// Whether a REDUCE_GRAD sums a bucket: where several stand before one step, the last of them does.
  bool is_reduced_here(std::int32_t id) const {
    const ActionPlace at = place_of(ids_, id);
    const auto position = static_cast<std::size_t>(at.position);
    const auto& placed = training_.replay.reductions[static_cast<std::size_t>(at.rank)];
    for (std::size_t anchor = 0; anchor < placed.size(); ++anchor) {
      const auto stands = [&](const std::vector<std::size_t>& list) {
        return std::ranges::find(list, position) != list.end();
      };
      if (!stands(placed[anchor].inside) && !stands(placed[anchor].behind)) continue;
      if (anchor > position)
        throw SpecError(fmt::format("a device does not sum gradients later than REDUCE_GRAD stands ({} of rank {}): "
                                    "put it behind the last gradient, or use --backend cpu",
                                    to_text(schedule_.ranks[static_cast<std::size_t>(at.rank)][position]), at.rank));
      return true;
    }
    return false;
  }

  bool completes_gradients(const DeviceCall& call, std::size_t actions) const {
    const std::int32_t last = last_gradients_[static_cast<std::size_t>(call.rank)];
    return call.action <= last && last < call.action + static_cast<std::int32_t>(actions);
  }

  /// Of one lane, which has all ranks.
  void complete_gradients(CallRecorder& kernels, int rank) {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      if (schedule_.stages[stage].rank != rank) continue;
      stages_[stage].hand_out_tied(kernels, tied_);
      if (agrees_)
        stages_[stage].measure_gradients(kernels,
                                         partials_ + static_cast<std::int64_t>(stage) * DeviceStage::kPartials);
    }
  }

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
  void allocate_common() {
    const auto floats = [&](std::int64_t count) {
      return reinterpret_cast<float*>(machine_.allocate(count * std::int64_t{sizeof(float)}));
    };
    if (agrees_) partials_ = floats(partial_count());
    const std::int64_t table = tied_elements();
    if (table > 0) tied_ = {.embedding = floats(table), .head = floats(table), .elements = table};
  }

  /// What the step did, the same on every stage.
  void end_step(std::vector<RankOutcome>& ranks) {
    StepNumbers numbers;
    for_each_stage([&](int, DeviceStage& stage) { numbers = stage.end_step(machine_); });
    if (!agrees_) return;
    if (numbers.skips != 0)
      for (RankOutcome& rank : ranks) ++rank.skipped_steps;
    if (spec_.half == HalfFormat::kFp16)
      loss_scale_ = next_loss_scale(loss_scale_, {.square_sum = numbers.square_sum, .overflows = numbers.skips != 0});
  }

  std::byte* address(ArenaPlace place, int lane) const {
    if (place.rank < 0) return nullptr;
    std::byte* arena = arenas_[static_cast<std::size_t>(lane) * schedule_.ranks.size() +
                               static_cast<std::size_t>(place.rank)];
    return arena == nullptr ? nullptr : arena + place.offset;
  }

  /// The ranks' timelines of a replay, in the order of their lists, and the losses.
  void note(std::vector<RankOutcome>& ranks, const std::vector<CallTimes>& of_world_calls) {
    const std::vector<std::vector<CallTimes>> times = recorded_->times(of_world_calls);
    for (int lane = 0; lane < world_.lanes(); ++lane) {
      const std::vector<CallTimes> of_action = times_of_actions(times, lane);
      for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
        if (!is_here(rank, lane)) continue;
        RankTimeline timeline{.memory = {{.bytes = taken_bytes(rank)}}};
        SimTime last{0};
        for (std::size_t position = 0; position < schedule_.ranks[rank].size(); ++position) {
          const Action& action = schedule_.ranks[rank][position];
          const CallTimes& own = of_action[static_cast<std::size_t>(ids_.first_id[rank]) + position];
          timeline.spans.push_back(
              {.start = own.start, .end = own.end, .action = action, .stream = stream_of(action.op)});
          last = std::max(last, own.end);
        }
        RankOutcome& of = outcome(ranks, rank, lane);
        of.timelines.push_back(std::move(timeline));
        of.ends.push_back(last);
        of.losses.emplace_back();
        of.balance_losses.emplace_back();
        of.loss_scales.push_back(loss_scale_.scale);
      }
      note_losses(ranks, lane);
    }
  }

  void note_losses(std::vector<RankOutcome>& ranks, int lane) {
    if (world_.lane(lane).tensor != 0) return;  // its tensor ranks have the same
    for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage) {
      const auto rank = static_cast<std::size_t>(schedule_.stages[stage].rank);
      const DeviceStage& own = lane_stages(lane)[stage];
      if (!own.reads_targets() || !is_here(rank, lane)) continue;
      const std::vector<double> sums = own.losses(machine_);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        if (training_.versions.version[stage][i] < 0) continue;
        outcome(ranks, rank, lane).losses.back().push_back({.microbatch = static_cast<int>(i), .sum = sums[i]});
      }
    }
  }

  /// A RECV has the times of its message's copy.
  std::vector<CallTimes> times_of_actions(const std::vector<std::vector<CallTimes>>& times, int lane) const {
    std::vector<CallTimes> of_action(static_cast<std::size_t>(ids_.first_id.back()));
    const ActionTable table(schedule_);
    const StageNeighbors neighbors = stage_neighbors(schedule_);
    for (std::size_t call = 0; call < times.size(); ++call)
      for (std::size_t track = 0; track < times[call].size(); ++track) {
        if (recorded_->world().tracks[call][track].lane != lane) continue;
        for (std::size_t k = 0; k < calls_[call].size(); ++k)
          of_action[static_cast<std::size_t>(program_.calls[call].action) + k] = times[call][track];
        const Action& send = calls_[call].front().action;
        if (!is_send(send.op)) continue;
        const bool forward = send.op == Op::kSendActivation;
        const int to = (forward ? neighbors.successor : neighbors.predecessor)[static_cast<std::size_t>(send.stage)];
        const std::int32_t receive =
            table.find(forward ? Op::kRecvActivation : Op::kRecvGradient, to, send.microbatch, send.part);
        if (receive >= 0) of_action[static_cast<std::size_t>(receive)] = times[call][track];
      }
    return of_action;
  }

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

}  // namespace

RunResult run_device(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options) {
  require_device_runnable(spec);
  return DeviceRun(spec, machine, options, std::nullopt).run();
}

DeviceRankResult run_device_rank(const RunSpec& spec, int world_rank, DeviceMachine& machine,
                                 const DeviceRunOptions& options) {
  require_device_runnable(spec);
  return DeviceRun(spec, machine, options, world_rank).run_rank(world_rank);
}

}  // namespace plumb
