#include "executor/training/training_rank.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <type_traits>
#include <utility>

#include "executor/replay/replay.h"
#include "executor/stages/host/cpu_stage.h"
#include "executor/training/interruption.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns [micro-batch] true if the stage computes its activations again; empty: all of them.
std::vector<bool> rebuilt_microbatches(const RunSpec& spec, int stage) {
  if (spec.rebuild_which == RebuildWhich::kAll) return {};
  std::vector<bool> rebuilt(static_cast<std::size_t>(spec.schedule.microbatches), false);
  for (const auto& actions : spec.schedule.ranks)
    for (const Action& action : actions)
      if (action.op == Op::kRecompute && action.stage == stage)
        rebuilt[static_cast<std::size_t>(action.microbatch)] = true;
  return rebuilt;
}

/// One rank with its stages.
class Rank {
 public:
  Rank(const RunSpec& spec, const TrainingPlan& plan, const TrainingSeat& own)
      : spec_(spec),
        plan_(plan),
        own_(own),
        place_(coordinates_of(plan.replay.grid, own.world_rank)),
        everyone_(*own.transport, everyone_of(plan.replay.grid), own.world_rank, own.clock) {
    const std::vector<StagePlace>& stages = plan.replay.schedule.stages;
    tensor_ = connect("tensor group", Group::kTensor);
    context_ = connect("context group", Group::kContext);
    expert_ = connect("expert group", Group::kExpert);
    groups_ = connect_groups(plan.replay, *own.transport, place_, own.clock);
    seat_ = {.place = place_,
             .stages = std::vector<Stage*>(stages.size(), nullptr),
             .transport = own.transport,
             .groups = &groups_,
             .pool = own.pool,
             .host_pool = own.host_pool,
             .clock = own.clock,
             .everyone = &everyone_,
             .tensor = tensor_.get(),
             .run_pair = [this](const Action& first, const Action& second, const auto& run_first,
                                const auto& run_second) { run_pair(first, second, run_first, run_second); },
             .settle = [this](const GradientMeasure& whole) { return settle(whole); },
             .interrupted = own.interrupted};
    if (spec.half == HalfFormat::kFp16) loss_scale_.scale = kFirstFp16LossScale;
    stages_.resize(stages.size());
    updates_.assign(stages.size(), 0);
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      if (stages[stage].rank != place_.pipeline) continue;
      stages_[stage] = std::make_unique<CpuStage>(stage_options(stage), *seat_.pool);
      seat_.stages[stage] = stages_[stage].get();
      if (spec.resume == nullptr) continue;
      for (CpuParameters* block : {&stages_[stage]->parameters(), stages_[stage]->experts()})
        if (block != nullptr) block->restore(*spec.resume);
    }
    if (spec.resume != nullptr) loss_scale_ = spec.resume->loss_scale;
  }

  void run() {
    std::int64_t peak_bytes = seat_.pool->live_bytes();
    int step = plan_.first_step, saved = spec_.resume != nullptr ? step : -1;
    for (; step < spec_.steps; ++step) {
      for (const auto& stage : stages_) {
        if (stage == nullptr) continue;
        stage->begin(step);
        stage->set_loss_scale(static_cast<float>(loss_scale_.scale));
      }
      const Meeting start = between_steps(step, [&] { return meet(); });
      if (start.ends) break;
      outcome_.loss_scales.push_back(loss_scale_.scale);
      RankTimeline timeline = replay(plan_.replay, seat_, start.time);
      outcome_.ends.push_back(own_.clock() - start.time);
      for (const MemorySample& sample : timeline.memory) peak_bytes = std::max(peak_bytes, sample.bytes);
      if (stands_for_its_pipeline_rank(place_)) outcome_.timelines.push_back(std::move(timeline));
      report_losses();
      if (own_.checkpoints.every == 0 || (step + 1) % own_.checkpoints.every != 0) continue;
      saved = step + 1;
      between_steps(saved, [&] { checkpoint(saved); });
    }
    if (own_.checkpoints.every > 0 && saved != step) between_steps(step, [&] { checkpoint(step); });
    for (const auto& stage : stages_)
      if (stage != nullptr) outcome_.parameter_bytes = outcome_.parameter_bytes + stage->held_bytes();
    if (tensor_ != nullptr) outcome_.tensor_group_bytes = tensor_->buffer_bytes();
    outcome_.allocations = seat_.pool->allocations();
    outcome_.peak_memory_bytes = peak_bytes;
    outcome_.peak_host_bytes = seat_.host_pool->peak_bytes();
    if (own_.weights != nullptr) capture_weights();
  }

  RankOutcome take_outcome() { return std::move(outcome_); }

 private:
  CpuStageOptions stage_options(std::size_t stage) {
    const RunSpec& spec = spec_;
    const auto members = [](const auto& group) { return group == nullptr ? 1 : group->members(); };
    const auto member = [](const auto& group) { return group == nullptr ? 0 : group->member(); };
    const int copies = members(groups_.copies[stage]);
    // Data ranks that divide each micro-batch.
    const int parts = parts_of_microbatch(plan_.replay.grid, place_.pipeline);
    const std::int64_t own_samples = spec.microbatch / parts;
    const std::int64_t pipeline_samples = spec.schedule.microbatches * spec.microbatch;
    CpuStageOptions options{.layers = spec.stage_layers[stage],
                            .groups = {.tensor = tensor_.get(), .context = context_.get(), .expert = expert_.get()},
                            .expert_tensor = expert_tensor_ranks(spec.grid),
                            .sequence_parallel = spec.sequence_parallel,
                            .context_attention = spec.context_attention,
                            .first_layer = plan_.first_layer[stage],
                            .microbatch = own_samples,
                            .sample_stride = spec.microbatch,
                            .sequence = spec.sequence,
                            .slices = plan_.replay.slices,
                            .rebuild = spec.rebuild,
                            .rebuild_layers = spec.rebuild_layers,
                            .rebuilds = rebuilt_microbatches(spec, static_cast<int>(stage)),
                            .optimizer = spec.optimizer,
                            .half = spec.half,
                            .zero = copies > 1 ? spec.zero : 0,
                            .shard_by = spec.shard_by,
                            .layerwise = spec.layerwise ? groups_.copies[stage].get() : nullptr,
                            .expert_layerwise = spec.layerwise ? groups_.expert_copies[stage].get() : nullptr,
                            .copies = copies,
                            .copy = member(groups_.copies[stage]),
                            .expert_copies = members(groups_.expert_copies[stage]),
                            .expert_copy = member(groups_.expert_copies[stage]),
                            .bucket_layers = plan_.bucket_layers[stage],
                            .state_pool = spec.offload_optimizer ? seat_.host_pool : nullptr,
                            .seed = spec.seed,
                            .text = spec.text,
                            .samples = &spec.samples,
                            .first_sample = place_.data / parts * pipeline_samples + place_.data % parts * own_samples,
                            .weight_versions = plan_.versions.version[stage]};
    for (const int batch : plan_.batches.batch_of)
      options.gradient_scales.push_back(
          static_cast<float>(1.0 / static_cast<double>(batch_tokens(spec, plan_, static_cast<std::size_t>(batch)))));
    if (own_.gradients != nullptr)
      options.before_update = [this, stage] {
        ModelValues& values = (*own_.gradients)[updates_[stage]++];
        for (const CpuParameters* block : speaks_for(stage)) block->copy_gradients(values);
      };
    return options;
  }

  template <class Work>
  std::invoke_result_t<Work> between_steps(int step, Work work) {
    const std::vector<RankTimeline>& timelines = outcome_.timelines;
    return plumb::between_steps(own_.world_rank, step, timelines.empty() ? nullptr : &timelines.back(),
                                own_.interrupted, work);
  }

  struct Meeting {
    SimTime time;       ///< a moment after the last rank came, the same on all ranks
    bool ends = false;  ///< true if any of them is to end
  };

  /// Waits for all ranks and returns the same result on each of them.
  Meeting meet() {
    std::array<float, 1> ends = {own_.ends && own_.ends() ? 1.0F : 0.0F};
    everyone_.run(all_reduce(ends));
    std::array<float, 2> bits = std::bit_cast<std::array<float, 2>>(own_.clock().count());
    everyone_.run(broadcast(bits, 0));
    return {.time = SimTime(std::bit_cast<std::int64_t>(bits)), .ends = ends[0] > 0};
  }

  void run_pair(const Action& first, const Action& second, const std::function<void()>& run_first,
                const std::function<void()>& run_second) {
    if (interleaves(plan_.replay.policy, first, second)) return turns_.run(run_first, run_second);
    run_first();
    run_second();
  }

  /// Returns the rank's group along one dimension of the grid; null if it is alone there.
  std::unique_ptr<Communicator> connect(const char* name, Group dimension) {
    std::vector<int> ranks = group_ranks(plan_.replay.grid, dimension, own_.world_rank);
    if (ranks.size() == 1) return nullptr;
    auto group = std::make_unique<Communicator>(*own_.transport, CommunicatorGroup{name, std::move(ranks)},
                                                own_.world_rank, own_.clock);
    group->take_turns(turns_);
    return group;
  }

  void report_losses() {
    std::vector<MicrobatchLoss>& losses = outcome_.losses.emplace_back();
    std::vector<MicrobatchLoss>& balance = outcome_.balance_losses.emplace_back();
    if (place_.tensor != 0) return;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      if (stages_[stage] == nullptr) continue;
      for (int i = 0; i < spec_.schedule.microbatches; ++i) {
        if (plan_.versions.version[stage][static_cast<std::size_t>(i)] < 0) continue;
        if (plan_.replay.neighbors.successor[stage] < 0)
          losses.push_back({.microbatch = i, .sum = stages_[stage]->loss(i)});
        if (stages_[stage]->experts() != nullptr)
          balance.push_back({.microbatch = i, .sum = stages_[stage]->balance_loss(i)});
      }
    }
  }

  /// Returns the stage's blocks of parameters that this rank writes down. Where state is sharded each copy writes its
  /// own elements, otherwise the first copy writes all. Of copies with the same share the first one writes.
  std::vector<CpuParameters*> speaks_for(std::size_t stage) const {
    const Communicator* same_shares = groups_.same_shares[stage].get();
    if (same_shares != nullptr && same_shares->member() > 0) return {};
    const auto speaks = [this](const std::unique_ptr<Communicator>& copies) {
      return spec_.zero > 0 || copies == nullptr || copies->member() == 0;
    };
    std::vector<CpuParameters*> blocks;
    if (stages_[stage] == nullptr) return blocks;
    if (speaks(groups_.copies[stage])) blocks.push_back(&stages_[stage]->parameters());
    if (stages_[stage]->experts() != nullptr && speaks(groups_.expert_copies[stage]))
      blocks.push_back(stages_[stage]->experts());
    return blocks;
  }

  void capture_weights() {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage)
      for (const CpuParameters* block : speaks_for(stage)) block->copy_weights(*own_.weights);
  }

  /// Writes down the rank's own elements and waits for the checkpoint to be made.
  void checkpoint(int steps) {
    const CheckpointDesk& desk = own_.checkpoints;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage)
      for (const CpuParameters* block : speaks_for(stage)) block->save(*desk.state);
    if (own_.world_rank == 0 || !desk.is_shared) {
      desk.state->steps = steps;
      desk.state->loss_scale = loss_scale_;
      for (const auto& stage : stages_)
        if (stage != nullptr) desk.state->updates = stage->parameters().updates();
    }
    meet();
    desk.deliver(*desk.state);
    meet();
  }

  /// Returns the scale of the gradients of this step; it is the same on every rank.
  StepScale settle(const GradientMeasure& whole) {
    const StepScale scale = step_scale(whole, loss_scale_, spec_.clip_norm);
    if (spec_.half == HalfFormat::kFp16) loss_scale_ = next_loss_scale(loss_scale_, whole);
    if (scale.skip) ++outcome_.skipped_steps;
    return scale;
  }

  const RunSpec& spec_;
  const TrainingPlan& plan_;
  const TrainingSeat& own_;
  const GridCoordinates place_;
  PairTurns turns_;
  Communicator everyone_;
  std::unique_ptr<Communicator> tensor_, context_, expert_;  // null in a group of one
  ReplayGroups groups_;
  ReplaySeat seat_;
  std::vector<std::unique_ptr<CpuStage>> stages_;  // [stage]; null for the stages of other ranks
  std::vector<std::size_t> updates_;               // [stage] optimizer steps whose gradients were captured
  LossScale loss_scale_;
  RankOutcome outcome_;
};

}  // namespace

RankOutcome train_rank(const RunSpec& spec, const TrainingPlan& plan, const TrainingSeat& seat) {
  Rank rank(spec, plan, seat);
  try {
    rank.run();
  } catch (const RunAborted&) {
    throw;
  } catch (const std::exception& error) {
    seat.transport->abort(sentence_of(error));  // ends the rank's own collectives under way, which its groups wait for
    throw;
  }
  return rank.take_outcome();
}

}}  // namespace plumb::executor
