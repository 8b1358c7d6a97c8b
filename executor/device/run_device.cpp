#include "executor/device/run_device.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "executor/data/token_batch.h"
#include "executor/device/device_stage.h"
#include "executor/device/placed_calls.h"
#include "executor/device_plan/device_calls.h"
#include "executor/device_plan/plan_device.h"
#include "executor/training/step_scale.h"
#include "executor/training/training_plan.h"
#include "executor/transport/transport.h"
#include "schedules/action_table.h"

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
  DeviceRun(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options)
      : spec_(spec),
        options_(options),
        machine_(machine),
        training_(plan_training(spec)),
        work_{.microbatch = spec.microbatch, .sequence = spec.sequence},
        schedule_(training_.replay.schedule),
        is_tied_(has_tied_head(spec)),
        agrees_(spec.clip_norm > 0 || spec.half == HalfFormat::kFp16),
        waits_for_all_(agrees_ || is_tied_),
        loss_scale_{.scale = spec.half == HalfFormat::kFp16 ? kFirstFp16LossScale : 1},
        last_gradients_(last_gradient_actions(schedule_)) {
    make_stages();
    program_ = plan_device(schedule_, costs(), waits_for_all_);
    calls_ = placed_calls(program_, schedule_);
    for (const std::vector<PlacedAction>& call : calls_) names_.push_back(to_text(call.front().action));
    require_memory();
    for (DeviceStage& stage : stages_) stage.settle(machine_, options.capture_gradients);
    allocate_common();
    for (const std::int64_t bytes : program_.arena_bytes) arenas_.push_back(machine_.allocate(bytes));
    machine_.prepare(static_cast<int>(schedule_.ranks.size()), program_.calls.size());
  }

  RunResult run() {
    std::vector<RankOutcome> ranks(schedule_.ranks.size());
    std::vector<ModelValues> gradients;
    for (int step = 0; step < spec_.steps; ++step) {
      upload_batch(step);
      for (DeviceStage& stage : stages_) stage.begin_step(machine_, static_cast<float>(loss_scale_.scale));
      enqueue();
      note(ranks, machine_.finish());
      end_step(ranks);
      for (int k = 0; options_.capture_gradients && k < batches(); ++k)
        gradients.push_back(values_of([&](const DeviceStage& stage) { return stage.gradient_values(machine_, k); }));
    }
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      RankOutcome& rank = ranks[static_cast<std::size_t>(schedule_.stages[stage].rank)];
      const StageMemory held = stages_[stage].memory();
      rank.parameter_bytes = rank.parameter_bytes + ParameterBytes{.weights = held.parameter_bytes,
                                                                   .gradients = held.gradient_bytes,
                                                                   .optimizer = held.optimizer_bytes};
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank].peak_memory_bytes = taken_bytes(rank);
    RunResult result = run_result(spec_, training_, std::move(ranks));
    result.gradients = std::move(gradients);
    if (options_.capture_weights)
      result.weights = values_of([&](const DeviceStage& stage) { return stage.weight_values(machine_); });
    return result;
  }

 private:
  void make_stages() {
    std::vector<float> gradient_scales;  // [micro-batch]
    for (const int batch : training_.batches.batch_of)
      gradient_scales.push_back(static_cast<float>(
          1.0 / static_cast<double>(batch_tokens(spec_, training_, static_cast<std::size_t>(batch)))));
    for (std::size_t stage = 0; stage < spec_.stage_layers.size(); ++stage)
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
                                              .clip_norm = static_cast<float>(spec_.clip_norm)});
  }

  CostTable costs() const {
    ChunkCosts chunk{.forward = {}, .input_grad = {}, .weight_grad = {}};
    for (const std::vector<Layer>& layers : spec_.stage_layers) {
      chunk.forward.push_back(flops_of(layers, work_, Pass::kForward));
      chunk.input_grad.push_back(flops_of(layers, work_, Pass::kInputGrad));
      chunk.weight_grad.push_back(flops_of(layers, work_, Pass::kWeightGrad));
    }
    CostTable costs = chunk_cost_table(static_cast<int>(stages_.size()), chunk);
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      costs.stages[stage].memory = stages_[stage].memory();
      costs.stages[stage].memory.parameter_bytes = stages_[stage].version_bytes();
      costs.stages[stage].activation_message_bytes = stages_[stage].output_bytes();
      costs.stages[stage].gradient_message_bytes = stages_[stage].input_bytes();
    }
    return costs;
  }

  /// All that a rank was given, which stays the same: its stages and its arena.
  std::int64_t taken_bytes(std::size_t rank) const {
    std::int64_t bytes = program_.arena_bytes[rank] + (rank == 0 ? common_bytes() : 0);
    for (std::size_t stage = 0; stage < stages_.size(); ++stage)
      if (static_cast<std::size_t>(schedule_.stages[stage].rank) == rank) bytes += stages_[stage].held_bytes();
    return bytes;
  }

  void require_memory() const {
    std::int64_t held = common_bytes();
    for (const DeviceStage& stage : stages_) held += stage.held_bytes();
    const std::int64_t arenas =
        std::accumulate(program_.arena_bytes.begin(), program_.arena_bytes.end(), std::int64_t{0});
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
    const std::size_t each = static_cast<std::size_t>(tokens_of(work_));
    std::vector<std::int32_t> inputs(each * static_cast<std::size_t>(schedule_.microbatches)), targets(inputs.size());
    for (int i = 0; i < schedule_.microbatches; ++i) {
      const BatchPlace place{.seed = spec_.seed,
                             .step = step,
                             .first_sample = i * spec_.microbatch,
                             .count = spec_.microbatch,
                             .sequence = spec_.sequence};
      const std::size_t first = each * static_cast<std::size_t>(i);
      fill_inputs(std::span(inputs).subspan(first, each), spec_.text, place);
      fill_targets(std::span(targets).subspan(first, each), spec_.text, place);
    }
    for (const DeviceStage& stage : stages_) {
      if (stage.reads_tokens()) stage.upload_tokens(machine_, inputs);
      if (stage.reads_targets()) stage.upload_targets(machine_, targets);
    }
  }

  void enqueue() {
    if (machine_.keeps_replay()) return;
    for (std::size_t i = 0; i < program_.calls.size(); ++i) {
      const DeviceCall& call = program_.calls[i];
      machine_.begin_call(i, call.rank, call.stream, names_[i].c_str());
      for (const DeviceWait& wait : call.waits) machine_.wait_for(static_cast<std::size_t>(wait.call));
      for (const PlacedAction& placed : calls_[i]) perform(placed);
      if (waits_for_all_ && completes_gradients(call, calls_[i].size())) complete_gradients(call.rank);
      machine_.end_call();
    }
  }

  void perform(const PlacedAction& placed) {
    const Action& action = placed.action;
    DeviceStage& stage = stages_[static_cast<std::size_t>(action.stage)];
    DeviceKernels& kernels = machine_.kernels();
    const DevicePass pass{.microbatch = action.microbatch,
                          .early = address(placed.early),
                          .late = address(placed.late),
                          .rebuilt_early = address(placed.rebuilt_early),
                          .rebuilt_late = address(placed.rebuilt_late),
                          .workspace = address(placed.workspace),
                          .incoming = address(placed.incoming),
                          .outgoing = address(placed.outgoing),
                          .weights = address(placed.weights)};
    switch (action.op) {
      case Op::kForward:
        return stage.forward(kernels, pass);
      case Op::kRecompute:
        return stage.recompute(kernels, pass);
      case Op::kBackward:
        return stage.backward(kernels, pass, placed.recomputes);
      case Op::kInputGrad:
        if (placed.recomputes) stage.recompute(kernels, pass);
        return stage.input_grad(kernels, pass);
      case Op::kWeightGrad:
        return stage.weight_grad(kernels, pass);
      case Op::kSendActivation:
        return kernels.copy(pass.outgoing, pass.incoming, stage.output_bytes());
      case Op::kSendGradient:
        return kernels.copy(pass.outgoing, pass.incoming, stage.input_bytes());
      case Op::kOptimizerStep:
        return stage.optimizer_step(kernels, placed.step, address(placed.weights), partials_, partial_count(), tied_);
      default:
        return;  // REDUCE_GRAD of one copy, UNSHARD and RESHARD without ZeRO: nothing to do
    }
  }

  bool completes_gradients(const DeviceCall& call, std::size_t actions) const {
    const std::int32_t last = last_gradients_[static_cast<std::size_t>(call.rank)];
    return call.action <= last && last < call.action + static_cast<std::int32_t>(actions);
  }

  void complete_gradients(int rank) {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      if (schedule_.stages[stage].rank != rank) continue;
      stages_[stage].hand_out_tied(machine_.kernels(), tied_);
      if (agrees_)
        stages_[stage].measure_gradients(machine_.kernels(),
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
    for (DeviceStage& stage : stages_) numbers = stage.end_step(machine_);
    if (!agrees_) return;
    if (numbers.skips != 0)
      for (RankOutcome& rank : ranks) ++rank.skipped_steps;
    if (spec_.half == HalfFormat::kFp16)
      loss_scale_ = next_loss_scale(loss_scale_, {.square_sum = numbers.square_sum, .overflows = numbers.skips != 0});
  }

  std::byte* address(ArenaPlace place) const {
    return place.rank < 0 ? nullptr : arenas_[static_cast<std::size_t>(place.rank)] + place.offset;
  }

  /// The ranks' timelines of a replay, in the order of their lists, and the losses.
  void note(std::vector<RankOutcome>& ranks, const std::vector<CallTimes>& times) {
    const ActionIds ids = action_ids(schedule_);
    std::vector<CallTimes> of_action(static_cast<std::size_t>(ids.first_id.back()));
    for (std::size_t i = 0; i < times.size(); ++i)
      for (std::size_t k = 0; k < calls_[i].size(); ++k)
        of_action[static_cast<std::size_t>(program_.calls[i].action) + k] = times[i];
    copy_times_to_receives(of_action, ids);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      RankTimeline timeline{.memory = {{.bytes = taken_bytes(rank)}}};
      SimTime last{0};
      for (std::size_t position = 0; position < schedule_.ranks[rank].size(); ++position) {
        const Action& action = schedule_.ranks[rank][position];
        const CallTimes& own = of_action[static_cast<std::size_t>(ids.first_id[rank]) + position];
        timeline.spans.push_back(
            {.start = own.start, .end = own.end, .action = action, .stream = stream_of(action.op)});
        last = std::max(last, own.end);
      }
      ranks[rank].timelines.push_back(std::move(timeline));
      ranks[rank].ends.push_back(last);
      ranks[rank].losses.emplace_back();
      ranks[rank].balance_losses.emplace_back();
      ranks[rank].loss_scales.push_back(loss_scale_.scale);
    }
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      if (!stages_[stage].reads_targets()) continue;
      const std::vector<double> sums = stages_[stage].losses(machine_);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        if (training_.versions.version[stage][i] < 0) continue;
        ranks[static_cast<std::size_t>(schedule_.stages[stage].rank)].losses.back().push_back(
            {.microbatch = static_cast<int>(i), .sum = sums[i]});
      }
    }
  }

  void copy_times_to_receives(std::vector<CallTimes>& of_action, const ActionIds& ids) const {
    const ActionTable table(schedule_);
    const StageNeighbors neighbors = stage_neighbors(schedule_);
    for (std::size_t id = 0; id < of_action.size(); ++id) {
      const ActionPlace at = place_of(ids, static_cast<std::int32_t>(id));
      const Action& action = schedule_.ranks[static_cast<std::size_t>(at.rank)][static_cast<std::size_t>(at.position)];
      if (!is_recv(action.op)) continue;
      const bool forward = action.op == Op::kRecvActivation;
      const int from = (forward ? neighbors.predecessor : neighbors.successor)[static_cast<std::size_t>(action.stage)];
      const std::int32_t send =
          table.find(forward ? Op::kSendActivation : Op::kSendGradient, from, action.microbatch, action.part);
      if (send >= 0) of_action[id] = of_action[static_cast<std::size_t>(send)];
    }
  }

  template <class Read>
  ModelValues values_of(Read read) const {
    ModelValues values;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      ModelValues own = read(stages_[stage]);
      const auto first = static_cast<std::size_t>(training_.first_layer[stage]);
      values.resize(std::max(values.size(), first + own.size()));
      std::ranges::move(own, values.begin() + static_cast<std::ptrdiff_t>(first));
    }
    return values;
  }

  const RunSpec& spec_;
  const DeviceRunOptions options_;
  DeviceMachine& machine_;
  const TrainingPlan training_;
  const LayerWork work_;
  const Schedule& schedule_;
  const bool is_tied_;
  const bool agrees_;         // what the optimizer does depends on all stages' gradients
  const bool waits_for_all_;  // on those, or on the other end's of a table
  LossScale loss_scale_;
  const std::vector<std::int32_t> last_gradients_;  // [rank] action
  std::vector<DeviceStage> stages_;
  DeviceProgram program_;
  std::vector<std::vector<PlacedAction>> calls_;
  std::vector<std::string> names_;  // [call]
  std::vector<std::byte*> arenas_;  // [rank]
  float* partials_ = nullptr;       // [stage, kPartials]
  DeviceTiedTable tied_;
};

}  // namespace

RunResult run_device(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options) {
  require_device_runnable(spec);
  return DeviceRun(spec, machine, options).run();
}

}  // namespace plumb
