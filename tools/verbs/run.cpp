#include "executor/training/run.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/spec/run_shape.h"
#include "executor/training/baseline.h"
#include "executor/transport/mpi/launched.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/nearest_name.h"
#include "tools/inputs/schedule_input.h"
#include "tools/io/checkpoint_file.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/progress.h"
#include "tools/io/stop_signals.h"
#include "tools/io/usage.h"
#include "tools/io/version.h"
#include "tools/machine/open_blas.h"
#include "tools/reports/run_report.h"
#include "tools/runs/cpu_run.h"
#include "tools/runs/cuda_run.h"
#include "tools/runs/layer_model_run.h"
#include "tools/runs/layer_models.h"
#include "tools/runs/lower_plan.h"
#include "tools/runs/plan_run.h"
#include "tools/runs/run_layout.h"
#include "tools/runs/timed_input.h"
#include "tools/verbs/verbs.h"
#include "traces/chrome/chrome_trace.h"

namespace plumb { inline namespace tools {
namespace {

constexpr int kRunSteps = 10;

/// The plan's own schedule, or the one that is asked for, on the plan's ranks and micro-batches.
RunSpec scheduled(RunSpec spec, const Plan& plan, ScheduleArguments schedule) {
  if (schedule.name.empty()) return spec;
  if (!names_schedule_file(schedule.name)) {
    if (schedule.ranks == 0) schedule.ranks = spec.grid.pipeline;
    if (schedule.microbatches == 0) schedule.microbatches = spec.schedule.microbatches;
  }
  schedule.replicas = has_replicas(spec);
  const Schedule order = schedule_input(schedule);
  return with_schedule(std::move(spec), plan, order, lowered_input(order, schedule));
}

void write_trace(const std::vector<Timeline>& steps, const std::string& path) {
  if (path.empty() || steps.empty()) return;
  write_file(path, [&](const TextSink& take) { write_chrome_trace(steps.back(), take); });
  print_note(fmt::format("wrote {}: the last step, to open at https://ui.perfetto.dev", path));
}

/// Says that a signal has ended the run before its last step, and returns the exit code.
int exit_code(const StopSignals& signals, int done, int steps, const std::string& what_is_kept) {
  if (done >= steps) return kDone;
  print_note(
      fmt::format("plumb: {} has ended this run behind step {} of {}{}", signals.name(), done, steps, what_is_kept));
  return signals.exit_code();
}

/// Replays by the clock, without training, and prints the time beside the prediction.
int run_by_the_clock(const ReplayArguments& arguments) {
  TimedInput input = timed_input(arguments);
  input.spec.steps = arguments.steps.value_or(kRunSteps);
  const StopSignals signals;
  const std::optional<TimedResult> of_all_ranks =
      replay_timed(input, arguments.trace, [&signals] { return signals.has_come(); });
  if (!of_all_ranks) return kDone;  // the first process reports
  const TimedResult& result = *of_all_ranks;
  const int done = static_cast<int>(result.step_seconds.size());
  write_trace(result.timelines, arguments.trace);
  if (arguments.json) {
    nlohmann::ordered_json times = nlohmann::ordered_json::array();
    for (const Seconds time : result.step_seconds) times.push_back(time.count());
    print_answer(
        json_answer(nlohmann::ordered_json{{"title", input.title},
                                           {"predicted_step_time_s", to_seconds(input.predicted.makespan).count()},
                                           {"step_times_s", times}}));
    return exit_code(signals, done, input.spec.steps, "");
  }
  const std::string ranks =
      fmt::format("{} {}", world_size(input.spec.grid), launched_ranks() > 0 ? "processes" : "threads");
  print_text(clocked_text(input.title, ranks, result.step_seconds, to_seconds(input.predicted.makespan)));
  return exit_code(signals, done, input.spec.steps, "");
}

/// Returns what is kept of a training that ends early, as the end of a sentence.
std::string kept_text(const CheckpointArguments& checkpoint) {
  if (checkpoint.folder.empty()) return ", and without --checkpoint-dir what it has trained is lost";
  return fmt::format(": go on from {} with --resume", checkpoint_path(checkpoint.folder));
}

/// A training, and the time that its steps are expected to take.
struct Training {
  RunSpec spec;
  std::string title;
  Seconds expected{1};
};

Training training_of_plan(const RunArguments& arguments, int steps) {
  const ReplayArguments& replay = arguments.replay;
  const OwnPlan own = own_plan_input(replay.plan, replay.ranks.meshes);
  const Plan& plan = own.plan;
  const Evaluation predicted = replay.backend == "cuda" ? runnable_evaluation(plan, replay.ranks.reshard)
                                                        : cpu_evaluation(plan, replay.ranks.reshard);
  RunSpec spec = lower_plan(plan, predicted, training_settings(replay.training, replay.backend, steps));
  spec = with_state(with_resharding(std::move(spec), replay.ranks), arguments.state);
  Training training{.spec = scheduled(std::move(spec), plan, replay.schedule),
                    .title = own.title,
                    .expected = steps * to_seconds(predicted.simulation.makespan)};
  training.spec.source = json_line(to_json(plan, version_text()));
  if (!replay.schedule.name.empty()) training.title += ", replayed as " + training.spec.schedule.name;
  return training;
}

Training training_of(const RunArguments& arguments, int steps) {
  const ReplayArguments& replay = arguments.replay;
  const bool names_file = replay.plan.find('/') != std::string::npos || replay.plan.ends_with(".json") ||
                          std::filesystem::exists(replay.plan);
  if (!is_layer_model(replay.plan) && !names_file)
    throw InputError(fmt::format("{} is neither a plan's file nor a network: {}", replay.plan,
                                 did_you_mean(replay.plan, layer_model_names())));
  if (!is_layer_model(replay.plan)) return training_of_plan(arguments, steps);
  Training training{.spec = layer_model_run(arguments)};
  training.spec.steps = steps;
  training.spec.source = fmt::format("{} split by {}", replay.plan, arguments.layer_model.split);
  training.title = fmt::format("{}, {} on {} ranks", replay.plan, training.spec.schedule.name,
                               world_size(rank_grid_of(training.spec)));
  return training;
}

}  // namespace

int run_verb(const RunArguments& arguments) {
  const ReplayArguments& replay = arguments.replay;
  require_cuda_arguments_on_cuda(replay);
  if (!replay.trace.empty()) require_writable(replay.trace);
  const int steps = replay.steps.value_or(kRunSteps);
  if (steps == 0 && (arguments.checkpoint.folder.empty() || arguments.baseline || replay.backend == "timed"))
    throw UsageError(
        "--steps 0 trains nothing and writes the initial weights as a checkpoint: give --checkpoint-dir, without "
        "--baseline, or more steps");
  if (replay.backend == "timed") return run_by_the_clock(replay);
  open_blas();
  require_cpu_arguments(replay);
  const CudaLibrary* gpu = replay.backend == "cuda" ? &require_cuda(replay.cuda) : nullptr;
  Training training = training_of(arguments, steps);
  RunSpec& spec = training.spec;
  spec.watchdog = Seconds{replay.watchdog_s};
  if (gpu != nullptr && run_as_processes(*gpu, spec, replay.cuda, !arguments.checkpoint.folder.empty())) return kDone;
  std::optional<RunSpec> alone;
  if (arguments.baseline) alone = baseline_of(spec);

  RunOptions options;
  std::optional<FileLock> lock;
  if (!arguments.checkpoint.folder.empty()) {
    if (launched_rank() == 0) lock.emplace(prepare_checkpoints(arguments.checkpoint.folder));
    if (arguments.checkpoint.resume) {
      spec.resume = std::make_shared<TrainingState>(read_checkpoint(arguments.checkpoint.folder));
      spec.resume_name = checkpoint_path(arguments.checkpoint.folder);
    }
    options.checkpoint_every = arguments.checkpoint.every > 0 ? arguments.checkpoint.every : std::max(steps, 1);
    options.checkpoint = [&](const TrainingState& state) { write_checkpoint(arguments.checkpoint.folder, state); };
  }

  options.interrupted = interrupted_trace(replay.trace);
  std::optional<StopSignals> signals;
  if (gpu == nullptr || !is_one_cuda_rank(replay.cuda)) signals.emplace();
  options.ends = [&signals] { return signals && signals->has_come(); };
  const std::optional<RunResult> of_all_ranks =
      gpu != nullptr
          ? run_on_cuda(
                *gpu, spec, replay.cuda, training.expected,
                {.checkpoint_every = options.checkpoint_every, .checkpoint = options.checkpoint, .ends = options.ends})
          : run_on_cpu(spec, options, training.expected);
  if (!of_all_ranks) return kDone;  // the first process reports
  const RunResult& result = *of_all_ranks;
  const int done = result.first_step + static_cast<int>(result.step_seconds.size());
  std::optional<RunResult> baseline;
  if (alone)
    baseline = with_progress("on one rank", training.expected, [&] { return run(*alone, {.ends = options.ends}); });
  if (options.ends()) baseline.reset();  // it may have ended early too
  const auto end = [&]() -> int {
    if (done < steps) return exit_code(*signals, done, steps, kept_text(arguments.checkpoint));
    if (!alone || baseline) return kDone;
    print_note(fmt::format("plumb: {} has ended the training on one rank, for --baseline", signals->name()));
    return signals->exit_code();
  };

  write_trace(result.timelines, replay.trace);
  if (replay.json) {
    nlohmann::ordered_json answer = run_json(result);
    if (baseline) answer["baseline_losses"] = baseline->losses;
    print_answer(json_answer(answer));
    return end();
  }
  const std::string processes = launched_ranks() > 1 ? fmt::format(", {} processes", launched_ranks()) : "";
  const std::string device = gpu != nullptr ? cuda_device_text(*gpu) : "the cpu" + processes;
  print_text(run_text(training.title, device, result, baseline ? &*baseline : nullptr));
  if (gpu != nullptr && done > result.first_step) print_note(result.timelines.back().title);
  return end();
}

}}  // namespace plumb::tools
