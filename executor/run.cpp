#include "executor/run.h"

#include <algorithm>
#include <array>
#include <bit>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "executor/check_run_spec.h"
#include "executor/cpu/stage.h"
#include "executor/in_process_transport.h"
#include "executor/replay.h"
#include "executor/weight_versions.h"
#include "schedules/error.h"
#include "traces/timeline_title.h"

namespace plumb {
namespace {

/// Which optimizer step of a replay each micro-batch belongs to.
struct Batches {
  std::vector<int> batch_of;        // [micro-batch]
  std::vector<std::int64_t> sizes;  // [batch] micro-batches of one replica
};

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

/// Everything that the ranks' threads share. Each writes its own elements only.
struct Session {
  const RunSpec& spec;
  const RunOptions& options;
  ReplayPlan plan;
  WeightVersions versions;
  Batches batches;
  std::vector<int> first_layer;                 // [stage]
  std::vector<std::vector<int>> bucket_layers;  // [stage][bucket]
  Clock clock;
  std::vector<std::unique_ptr<TensorPool>> pools;       // [world rank]; they outlive the transport's messages
  std::vector<std::unique_ptr<TensorPool>> host_pools;  // [world rank]
  std::unique_ptr<InProcessTransport> transport;
  std::vector<std::vector<SimTime>> ends;                         // [world rank][replay]
  std::vector<std::vector<std::vector<double>>> microbatch_loss;  // [replay][replica, context rank][micro-batch]
  RunResult result;
  TrainingState state;  // of the newest checkpoint
  std::mutex failure_mutex;
  std::exception_ptr failure;  // the first
};

std::int64_t batch_tokens(const Session& session, std::size_t batch) {
  return session.spec.grid.data * session.batches.sizes[batch] * session.spec.microbatch * session.spec.sequence;
}

/// The first stage of its model part speaks for its copies.
bool speaks_for_copies(const Session& session, int stage) {
  const std::vector<StagePlace>& stages = session.plan.schedule.stages;
  const int part = stages[static_cast<std::size_t>(stage)].model_part;
  return std::ranges::find(stages, part, &StagePlace::model_part) - stages.begin() == stage;
}

std::vector<int> all_ranks(const RankGrid& grid) {
  std::vector<int> ranks(static_cast<std::size_t>(world_size(grid)));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// [micro-batch] whether the stage computes it again; empty: all of them.
std::vector<bool> rebuilt_microbatches(const RunSpec& spec, int stage) {
  if (spec.rebuild_which == RebuildWhich::kAll) return {};
  std::vector<bool> rebuilt(static_cast<std::size_t>(spec.schedule.microbatches), false);
  for (const auto& actions : spec.schedule.ranks)
    for (const Action& action : actions)
      if (action.op == Op::kRecompute && action.stage == stage)
        rebuilt[static_cast<std::size_t>(action.microbatch)] = true;
  return rebuilt;
}

/// Stages of one rank of one replica.
class Rank {
 public:
  Rank(Session& session, const GridCoordinates& place)
      : session_(session),
        place_(place),
        world_rank_(world_rank_of(session.plan.grid, place)),
        everyone_(*session.transport, {"all ranks", all_ranks(session.plan.grid)}, world_rank_, session.clock) {
    const std::vector<StagePlace>& stages = session.plan.schedule.stages;
    tensor_ = connect("tensor group", Group::kTensor);
    context_ = connect("context group", Group::kContext);
    groups_ = connect_groups(session.plan, *session.transport, place, session.clock);
    seat_ = {.place = place,
             .stages = std::vector<Stage*>(stages.size(), nullptr),
             .transport = session.transport.get(),
             .groups = &groups_,
             .pool = session.pools[static_cast<std::size_t>(world_rank_)].get(),
             .host_pool = session.host_pools[static_cast<std::size_t>(world_rank_)].get(),
             .clock = session.clock,
             .everyone = &everyone_,
             .tensor = tensor_.get(),
             .settle = [this](const GradientMeasure& whole) { return settle(whole); }};
    if (session.spec.half == HalfFormat::kFp16) loss_scale_.scale = kFirstFp16LossScale;
    stages_.resize(stages.size());
    updates_.assign(stages.size(), 0);
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      if (stages[stage].rank != place.pipeline) continue;
      stages_[stage] = std::make_unique<CpuStage>(stage_options(stage), *seat_.pool);
      seat_.stages[stage] = stages_[stage].get();
      if (session.spec.resume != nullptr) stages_[stage]->parameters().restore(*session.spec.resume);
    }
    if (session.spec.resume != nullptr) loss_scale_ = session.spec.resume->loss_scale;
  }

  void run() {
    std::int64_t peak_bytes = seat_.pool->live_bytes();
    for (int step = session_.result.first_step; step < session_.spec.steps; ++step) {
      for (const auto& stage : stages_) {
        if (stage == nullptr) continue;
        stage->begin(step);
        stage->set_loss_scale(static_cast<float>(loss_scale_.scale));
      }
      if (world_rank_ == 0) session_.result.loss_scales.push_back(loss_scale_.scale);
      const SimTime start = meet();
      RankTimeline timeline = replay(session_.plan, seat_, start);
      session_.ends[static_cast<std::size_t>(world_rank_)].push_back(session_.clock() - start);
      for (const MemorySample& sample : timeline.memory) peak_bytes = std::max(peak_bytes, sample.bytes);
      if (is_first_of_its_rank())
        session_.result.timelines[replay_of(step)].ranks[static_cast<std::size_t>(place_.pipeline)] =
            std::move(timeline);
      report_losses(step);
      if (is_checkpoint(step)) checkpoint(step + 1);
    }
    ParameterBytes& bytes = session_.result.parameter_bytes[static_cast<std::size_t>(world_rank_)];
    for (const auto& stage : stages_)
      if (stage != nullptr) bytes = bytes + stage->parameters().held_bytes();
    if (tensor_ != nullptr)
      session_.result.tensor_group_bytes[static_cast<std::size_t>(world_rank_)] = tensor_->buffer_bytes();
    session_.result.allocations[static_cast<std::size_t>(world_rank_)] = seat_.pool->allocations();
    if (session_.options.capture_weights) capture_weights();
    if (!is_first_of_its_rank()) return;
    session_.result.peak_memory_bytes[static_cast<std::size_t>(place_.pipeline)] = peak_bytes;
    session_.result.peak_host_bytes[static_cast<std::size_t>(place_.pipeline)] = seat_.host_pool->peak_bytes();
  }

 private:
  CpuStageOptions stage_options(std::size_t stage) {
    const RunSpec& spec = session_.spec;
    const int copies = groups_.copies[stage] == nullptr ? 1 : groups_.copies[stage]->members();
    const int parts = parts_of_microbatch(session_.plan.grid, place_.pipeline);  // of each micro-batch
    const std::int64_t own_samples = spec.microbatch / parts;
    const std::int64_t pipeline_samples = spec.schedule.microbatches * spec.microbatch;
    CpuStageOptions options{.layers = spec.stage_layers[stage],
                            .groups = {.tensor = tensor_.get(), .context = context_.get()},
                            .sequence_parallel = spec.sequence_parallel,
                            .context_attention = spec.context_attention,
                            .first_layer = session_.first_layer[stage],
                            .microbatch = own_samples,
                            .sample_stride = spec.microbatch,
                            .sequence = spec.sequence,
                            .slices = session_.plan.slices,
                            .rebuild = spec.rebuild,
                            .rebuild_layers = spec.rebuild_layers,
                            .rebuilds = rebuilt_microbatches(spec, static_cast<int>(stage)),
                            .optimizer = spec.optimizer,
                            .half = spec.half,
                            .zero = copies > 1 ? spec.zero : 0,
                            .shard_by = spec.shard_by,
                            .layerwise = spec.layerwise ? groups_.copies[stage].get() : nullptr,
                            .copies = copies,
                            .copy = copies > 1 ? groups_.copies[stage]->member() : 0,
                            .bucket_layers = session_.bucket_layers[stage],
                            .state_pool = spec.offload_optimizer ? seat_.host_pool : nullptr,
                            .seed = spec.seed,
                            .text = spec.text,
                            .samples = &spec.samples,
                            .first_sample = place_.data / parts * pipeline_samples + place_.data % parts * own_samples,
                            .weight_versions = session_.versions.version[stage]};
    for (const int batch : session_.batches.batch_of)
      options.gradient_scales.push_back(
          static_cast<float>(1.0 / static_cast<double>(batch_tokens(session_, static_cast<std::size_t>(batch)))));
    if (session_.options.capture_gradients && gives_values(stage))
      options.before_update = [this, stage] {
        stages_[stage]->parameters().copy_gradients(session_.result.gradients[updates_[stage]++]);
      };
    return options;
  }

  /// Waits for all ranks; returns a moment after the last one came, the same for all.
  SimTime meet() {
    everyone_.run(all_reduce({}));
    std::array<float, 2> bits = std::bit_cast<std::array<float, 2>>(session_.clock().count());
    everyone_.run(broadcast(bits, 0));
    return SimTime(std::bit_cast<std::int64_t>(bits));
  }

  /// The rank's group along one dimension of the grid; null if it is alone there.
  std::unique_ptr<Communicator> connect(const char* name, Group dimension) const {
    std::vector<int> ranks = group_ranks(session_.plan.grid, dimension, world_rank_);
    if (ranks.size() == 1) return nullptr;
    return std::make_unique<Communicator>(*session_.transport, CommunicatorGroup{name, std::move(ranks)}, world_rank_,
                                          session_.clock);
  }

  /// Tensor rank 0 of context rank 0 of replica 0, whose timeline and memory stand for its pipeline rank.
  bool is_first_of_its_rank() const { return place_.data == 0 && place_.context == 0 && place_.tensor == 0; }

  /// Replica 0, whose tensor ranks write down their shares.
  bool captures() const { return place_.data == 0 && place_.context == 0; }

  void report_losses(int step) {
    if (place_.tensor != 0) return;
    std::vector<double>& losses =
        session_.microbatch_loss[replay_of(step)]
                                [static_cast<std::size_t>(place_.data * session_.spec.grid.context + place_.context)];
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      if (stages_[stage] == nullptr || session_.plan.neighbors.successor[stage] >= 0) continue;
      for (std::size_t i = 0; i < losses.size(); ++i)
        if (session_.versions.version[stage][i] >= 0) losses[i] = stages_[stage]->loss(static_cast<int>(i));
    }
  }

  /// Whether the run's values come from this stage: where state is sharded each copy has its own elements, otherwise
  /// one copy speaks for all.
  bool gives_values(std::size_t stage) const {
    const bool is_sharded = session_.spec.zero > 0 && groups_.copies[stage] != nullptr;
    return is_sharded || (captures() && speaks_for_copies(session_, static_cast<int>(stage)));
  }

  void capture_weights() {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage)
      if (stages_[stage] != nullptr && gives_values(stage))
        stages_[stage]->parameters().copy_weights(session_.result.weights);
  }

  /// Of the result's lists by replay.
  std::size_t replay_of(int step) const { return static_cast<std::size_t>(step - session_.result.first_step); }

  bool is_checkpoint(int step) const {
    const int every = session_.options.checkpoint_every;
    return every > 0 && ((step + 1) % every == 0 || step + 1 == session_.spec.steps);
  }

  /// All ranks write down their own elements; then one hands the whole on while the others wait.
  void checkpoint(int steps) {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage)
      if (stages_[stage] != nullptr && gives_values(stage)) stages_[stage]->parameters().save(session_.state);
    if (world_rank_ == 0) {
      session_.state.steps = steps;
      session_.state.loss_scale = loss_scale_;
      for (const auto& stage : stages_)
        if (stage != nullptr) session_.state.updates = stage->parameters().updates();
    }
    meet();
    if (world_rank_ == 0) session_.options.checkpoint(session_.state);
    meet();
  }

  /// What the optimizer does with the gradients of this step; the same on every rank.
  StepScale settle(const GradientMeasure& whole) {
    const StepScale scale = step_scale(whole, loss_scale_, session_.spec.clip_norm);
    if (session_.spec.half == HalfFormat::kFp16) loss_scale_ = next_loss_scale(loss_scale_, whole);
    if (scale.skip && world_rank_ == 0) ++session_.result.skipped_steps;
    return scale;
  }

  Session& session_;
  GridCoordinates place_;
  int world_rank_;
  Communicator everyone_;
  std::unique_ptr<Communicator> tensor_, context_;  // null in a group of one
  ReplayGroups groups_;
  ReplaySeat seat_;
  std::vector<std::unique_ptr<CpuStage>> stages_;  // [stage], null for those of other ranks
  std::vector<std::size_t> updates_;               // [stage]
  LossScale loss_scale_;
};

void run_rank(Session& session, int world_rank) {
  std::unique_ptr<Rank> rank;  // it goes after the abort, which ends its collectives under way
  try {
    rank = std::make_unique<Rank>(session, coordinates_of(session.plan.grid, world_rank));
    rank->run();
  } catch (const RunAborted&) {
    // The rank that failed first has said why.
  } catch (const std::exception& error) {
    {
      const std::lock_guard lock(session.failure_mutex);
      if (session.failure == nullptr) session.failure = std::current_exception();
    }
    session.transport->abort(error.what());
  }
}

/// Zeros in the shape of the model's parameters.
ModelValues room_for_values(const RunSpec& spec, const std::vector<int>& first_layer) {
  ModelValues values;
  for (std::size_t stage = 0; stage < first_layer.size(); ++stage)
    for (std::size_t i = 0; i < spec.stage_layers[stage].size(); ++i) {
      const std::size_t number = static_cast<std::size_t>(first_layer[stage]) + i;
      values.resize(std::max(values.size(), number + 1));
      values[number].clear();
      for (const ParameterTensor& parameter : layer_parameters(spec.stage_layers[stage][i]))
        values[number].emplace_back(static_cast<std::size_t>(element_count(parameter)));
    }
  return values;
}

void prepare_result(Session& session) {
  if (session.spec.resume != nullptr) session.result.first_step = static_cast<int>(session.spec.resume->steps);
  if (session.options.checkpoint_every > 0) session.state = room_for_state(session.spec);
  const auto steps = static_cast<std::size_t>(session.spec.steps - session.result.first_step);
  const Schedule& schedule = session.plan.schedule;
  const Timeline empty{.source = Timeline::Source::kMeasured,
                       .title = timeline_title(schedule),
                       .microbatches = schedule.microbatches,
                       .stages = schedule.stages,
                       .ranks = std::vector<RankTimeline>(schedule.ranks.size())};
  session.result.timelines.assign(steps, empty);
  session.result.peak_memory_bytes.assign(schedule.ranks.size(), 0);
  session.result.peak_host_bytes.assign(schedule.ranks.size(), 0);
  session.ends.resize(static_cast<std::size_t>(world_size(session.plan.grid)));
  const int replicas = std::ranges::max(session.plan.grid.meshes, {}, &StageMesh::data).data;
  session.microbatch_loss.assign(steps, std::vector(static_cast<std::size_t>(replicas * session.spec.grid.context),
                                                    std::vector<double>(session.batches.batch_of.size())));
  session.result.parameter_bytes.resize(session.ends.size());
  session.result.allocations.resize(session.ends.size());
  session.result.tensor_group_bytes.resize(session.ends.size());
  const ModelValues no_values = room_for_values(session.spec, session.first_layer);
  if (session.options.capture_gradients)
    session.result.gradients.assign(steps * session.batches.sizes.size(), no_values);
  if (session.options.capture_weights) session.result.weights = no_values;
}

/// Losses by optimizer step, added by replica, context rank and micro-batch; step times by replay.
void finish_result(Session& session) {
  for (const auto& ranks : session.microbatch_loss) {
    std::vector<double> sums(session.batches.sizes.size(), 0.0);
    for (const std::vector<double>& losses : ranks)
      for (std::size_t i = 0; i < losses.size(); ++i)
        sums[static_cast<std::size_t>(session.batches.batch_of[i])] += losses[i];
    for (std::size_t batch = 0; batch < sums.size(); ++batch)
      session.result.losses.push_back(sums[batch] / static_cast<double>(batch_tokens(session, batch)));
  }
  for (std::size_t step = 0; step < session.ends.front().size(); ++step) {
    SimTime last{0};
    for (const std::vector<SimTime>& ends : session.ends) last = std::max(last, ends[step]);
    session.result.step_seconds.push_back(to_seconds(last));
  }
}

}  // namespace

RunResult run(const RunSpec& spec, const RunOptions& options) {
  require_runnable(spec);
  use_one_blas_thread();
  Session session{.spec = spec,
                  .options = options,
                  .plan = plan_replay(spec.schedule, rank_grid_of(spec), tied_stages(spec), replay_policy(spec)),
                  .versions = weight_versions(spec.schedule),
                  .clock = monotonic_clock()};
  session.batches = batches_of(spec.schedule, session.versions);
  session.first_layer = first_layers(spec);
  session.bucket_layers = bucket_layers(spec);
  const int ranks = world_size(session.plan.grid);
  InProcessOptions transport{.ranks = ranks, .sends = spec.sends, .watchdog = spec.watchdog};
  for (int rank = 0; rank < ranks; ++rank) {
    session.pools.push_back(std::make_unique<TensorPool>());
    session.host_pools.push_back(std::make_unique<TensorPool>());
    transport.pools.push_back(session.pools.back().get());
  }
  session.transport = std::make_unique<InProcessTransport>(transport, session.clock);
  prepare_result(session);

  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, std::ref(session), rank);
  for (std::thread& thread : threads) thread.join();
  if (session.failure != nullptr) std::rethrow_exception(session.failure);
  finish_result(session);
  return std::move(session.result);
}

}  // namespace plumb
