#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/measure/measure.h"
#include "executor/spec/run_shape.h"
#include "executor/training/run.h"
#include "executor/transport/mpi/launched.h"
#include "planner/calibrate/calibration.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/link_file.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/progress.h"
#include "tools/io/stop_signals.h"
#include "tools/io/usage.h"
#include "tools/io/version.h"
#include "tools/machine/machine_load.h"
#include "tools/machine/machine_speed.h"
#include "tools/machine/open_blas.h"
#include "tools/pages/validation_page.h"
#include "tools/pages/write_page.h"
#include "tools/reports/comparison_report.h"
#include "tools/reports/table.h"
#include "tools/reports/verdict.h"
#include "tools/runs/cpu_run.h"
#include "tools/runs/cuda_run.h"
#include "tools/runs/lower_plan.h"
#include "tools/runs/plan_run.h"
#include "tools/runs/run_layout.h"
#include "tools/runs/timed_input.h"
#include "tools/verbs/verbs.h"
#include "traces/chrome/chrome_trace.h"
#include "traces/compare/compare.h"
#include "traces/draw/draw_svg.h"
#include "traces/statistics.h"

namespace plumb { inline namespace tools {
namespace {

constexpr int kValidateSteps = 5;
constexpr int kWarmupSteps = 2;  ///< memory is touched and pools are filled; not counted
constexpr int kTimedWarmupSteps = 1;
constexpr double kTolerancePct = 10;  ///< of the verdict without --tolerance
constexpr Seconds kSpeedBudget{0.4};  ///< before the run, and after it

/// A prediction that stood before the first step, and what was measured after it.
struct Replayed {
  std::string title;
  Timeline predicted;
  std::vector<Timeline> measured;  // warm-up left out
  std::vector<double> losses;      // empty where nothing is trained
  MachineState machine;            // nothing where ranks are processes
  std::string ended_by;            // the signal that has ended the run before its last step; empty: none
  int exit_code = kDone;           // of that signal
};

/// The steps of a run behind its warm-up, of which there may be fewer than it was to have.
void take_measured(Replayed& replayed, std::vector<Timeline>& steps, int warmup) {
  const auto first = steps.begin() + std::min<std::ptrdiff_t>(warmup, std::ssize(steps));
  std::move(first, steps.end(), std::back_inserter(replayed.measured));
}

/// Several processes go on together: each of their further runs ends at its first meeting.
bool goes_on(const Replayed& replayed) {
  return replayed.ended_by.empty() || launched_ranks() > 1;
}

void note_end(Replayed& replayed, const StopSignals& signals) {
  replayed.ended_by = signals.name();
  replayed.exit_code = signals.exit_code();
}

/// The plan on the cluster that is measured now.
Plan recalibrated(Plan plan, Seconds budget) {
  if (launched_ranks() > 1)
    throw UsageError("--recalibrate measures with the threads of one process: leave it away under mpirun");
  const MeasureOptions options{.budget = budget, .busy_ranks = plan.cluster.devices, .date = today()};
  print_note(fmt::format("measuring for about {:.0f} s with {} ranks at work", budget.count(), options.busy_ranks));
  const Measurement measured = with_progress("measuring", budget, [&options] { return measure_cpu(options); });
  plan.cluster = resize(cluster_from_measurement(measured), plan.cluster.devices);
  return plan;
}

void announce(SimTime predicted) {
  print_note(fmt::format("predicted before the first step: {}", duration_text(to_seconds(predicted).count())));
}

/// Returns the evaluation with its hops over that link.
Evaluation over_measured_link(Evaluation evaluation, const MessageLink& link) {
  const Seconds before = step_time(evaluation.simulation);
  evaluation.simulation = simulate(evaluation.lowered, over_link(evaluation.costs, evaluation.lowered, link),
                                   {.burst_bytes = link.burst_bytes});
  StepRates& rates = evaluation.rates;
  for (double* rate : {&rates.samples_per_second, &rates.tokens_per_second, &rates.mfu_ratio})
    *rate *= before / step_time(evaluation.simulation);
  return evaluation;
}

/// The prediction that the run is held against.
Evaluation evaluation_of(const Plan& plan, const ReplayArguments& replay) {
  const bool on_gpu = replay.backend == "cuda";
  if (!plan.layout.meshes.empty()) {
    if (on_gpu) throw UsageError("meshes of different shape are for --backend cpu: a GPU's ranks are all alike");
    if (!replay.link.empty())
      throw UsageError(
          "--link is one link for all hops, and between meshes of different shape they differ: leave it away");
  }
  const std::optional<MessageLink> link = hop_link(replay.link, plan.cluster);
  Evaluation evaluation = !on_gpu             ? cpu_evaluation(plan, replay.ranks.reshard)
                          : replay.cuda.graph ? runnable_evaluation(launched_at_once(plan))
                                              : runnable_evaluation(plan);
  return link ? over_measured_link(std::move(evaluation), *link) : evaluation;
}

/// Replays the plan on the CPU or on a GPU. Returns nothing on all but the first of several processes, and where it has
/// started processes.
std::optional<Replayed> replay_plan(const ValidateArguments& arguments, int steps) {
  const ReplayArguments& replay = arguments.replay;
  const bool on_gpu = replay.backend == "cuda";
  require_cpu_arguments(replay);
  if (!replay.schedule.name.empty())
    throw UsageError("validate predicts and runs a plan's own schedule: leave --schedule away, or use --backend timed");
  const CudaLibrary* gpu = on_gpu ? &require_cuda(replay.cuda) : nullptr;
  OwnPlan own = own_plan_input(replay.plan, replay.ranks.meshes);
  Plan& plan = own.plan;
  if (arguments.recalibrate_s > 0) plan = recalibrated(std::move(plan), Seconds{arguments.recalibrate_s});
  const Evaluation predicted = evaluation_of(plan, replay);
  RunSpec spec = lower_plan(plan, predicted, training_settings(replay.training, replay.backend, kWarmupSteps + steps));
  spec = with_resharding(std::move(spec), replay.ranks);
  spec.watchdog = Seconds{replay.watchdog_s};
  spec.source = json_line(to_json(plan, version_text()));
  if (on_gpu && run_as_processes(*gpu, spec, replay.cuda)) return {};
  const bool reports = is_first_process(replay.cuda);
  if (reports) announce(predicted.simulation.makespan);
  if (reports && plan.layout.expert > 1)
    print_note(
        "experts are predicted with as many tokens each: what a rank computes and holds follows from the picks, and "
        "these "
        "from --seed");
  if (!arguments.output.empty() && reports) {
    write_file(arguments.output, json_answer(to_json(prediction_of(predicted))));
    print_note(fmt::format("wrote {}", arguments.output));
  }
  const Seconds expected = spec.steps * to_seconds(predicted.simulation.makespan);
  Replayed replayed{
      .title = fmt::format("{}, {} ranks on {}", own.title, world_size(rank_grid_of(spec)),
                           on_gpu ? cuda_device_text(*gpu) : plan.cluster.device.name + " of this machine"),
      .predicted = predicted.simulation.timeline};
  const auto speed_now = [&]() -> std::optional<MachineSpeed> {
    if (on_gpu || launched_ranks() > 1) return {};
    return machine_speed(plan.cluster, world_size(rank_grid_of(spec)), kSpeedBudget);
  };
  replayed.machine.before = speed_now();
  const OtherProgramsClock others;
  std::optional<StopSignals> signals;
  if (!on_gpu || !is_one_cuda_rank(replay.cuda)) signals.emplace();
  const auto ends = [&signals] { return signals && signals->has_come(); };
  for (int i = 0; i < arguments.repeat && goes_on(replayed); ++i) {
    std::optional<RunResult> result =
        on_gpu ? run_on_cuda(*gpu, spec, replay.cuda, expected, {.ends = ends})
               : run_on_cpu(spec, {.interrupted = interrupted_trace(replay.trace), .ends = ends}, expected);
    if (!result) continue;
    const bool is_whole = std::ssize(result->timelines) == spec.steps;
    if (on_gpu && i == 0 && !result->timelines.empty()) replayed.title += "; " + result->timelines.back().title;
    take_measured(replayed, result->timelines, kWarmupSteps);
    if (is_whole || i == 0) replayed.losses = std::move(result->losses);  // the same each time
    if (!is_whole) note_end(replayed, *signals);
  }
  if (launched_ranks() <= 1) replayed.machine.others = others.read();
  replayed.machine.after = speed_now();
  if (replayed.measured.empty() && replayed.ended_by.empty()) return {};
  return replayed;
}

/// Nothing on all but the first of several processes.
std::optional<Replayed> replay_by_the_clock(const ValidateArguments& arguments, int steps) {
  const ReplayArguments& replay = arguments.replay;
  if (!arguments.output.empty())
    throw UsageError("-o writes the prediction of a plan that is trained; `plumb simulate --json` says this one");
  TimedInput input = timed_input(replay);
  input.spec.steps = kTimedWarmupSteps + steps;
  if (launched_rank() == 0) announce(input.predicted.makespan);
  Replayed replayed{.title = fmt::format("{}: replayed by the clock on {} {}", input.title, world_size(input.spec.grid),
                                         launched_ranks() > 0 ? "processes" : "threads"),
                    .predicted = input.predicted.timeline};
  const OtherProgramsClock others;
  const StopSignals signals;
  const auto ends = [&signals] { return signals.has_come(); };
  for (int i = 0; i < arguments.repeat && goes_on(replayed); ++i) {
    std::optional<TimedResult> result = replay_timed(input, replay.trace, ends);
    if (!result) continue;
    const bool is_whole = std::ssize(result->timelines) == input.spec.steps;
    take_measured(replayed, result->timelines, kTimedWarmupSteps);
    if (!is_whole) note_end(replayed, signals);
  }
  if (launched_ranks() <= 1) replayed.machine.others = others.read();
  if (replayed.measured.empty() && replayed.ended_by.empty()) return {};
  return replayed;
}

/// Writes the median step, and the prediction beside it, in the forms that were asked for.
void write_timelines(const ValidateArguments& arguments, const Replayed& replayed, const Timeline& median) {
  if (!arguments.replay.trace.empty()) {
    write_file(arguments.replay.trace, [&](const TextSink& take) { write_chrome_trace(median, take); });
    print_note(fmt::format("wrote {}: the median step", arguments.replay.trace));
  }
  if (!arguments.svg.empty()) {
    write_file(arguments.svg, draw_svg({replayed.predicted, median}));
    print_note(fmt::format("wrote {}", arguments.svg));
  }
  if (!arguments.lanes.empty()) {
    write_file(arguments.lanes, [&](const TextSink& take) { write_compared_trace(replayed.predicted, median, take); });
    print_note(fmt::format("wrote {}: the prediction above the median step", arguments.lanes));
  }
}

}  // namespace

int validate_verb(const ValidateArguments& arguments) {
  const ReplayArguments& replay = arguments.replay;
  require_cuda_arguments_on_cuda(replay);
  for (const std::string& path : {replay.trace, arguments.output, arguments.svg, arguments.html, arguments.lanes}) {
    if (!path.empty()) require_writable(path);
  }
  if (arguments.recalibrate_s > 0 && replay.backend != "cpu")
    throw UsageError("--recalibrate measures the kernels of --backend cpu: leave it away");
  if (replay.backend != "timed") open_blas();
  const int steps = replay.steps.value_or(kValidateSteps);
  const std::string load = load_text();
  const std::optional<Replayed> of_all_ranks =
      replay.backend == "timed" ? replay_by_the_clock(arguments, steps) : replay_plan(arguments, steps);
  if (!of_all_ranks) return kDone;  // the first process reports
  const Replayed& replayed = *of_all_ranks;
  if (replayed.measured.empty()) {
    print_note(fmt::format("plumb: {} has ended this run before a step that counts", replayed.ended_by));
    return replayed.exit_code;
  }
  const Comparison comparison = compare(replayed.predicted, replayed.measured);

  const auto nearest_to_median = std::ranges::min_element(replayed.measured, {}, [&](const Timeline& t) {
    return std::abs((makespan_of(t) - comparison.step.measured).count());
  });
  write_timelines(arguments, replayed, *nearest_to_median);
  const double tolerance_pct = arguments.tolerance_pct.value_or(kTolerancePct);
  const Verdict verdict = verdict_of(comparison, replayed.predicted, replayed.machine, tolerance_pct);
  if (!arguments.html.empty()) {
    write_page(arguments.html,
               validation_page(replayed.title, verdict, comparison, replayed.predicted, *nearest_to_median,
                               fmt::format("{}; {}", load, to_text(replayed.machine))));
  }
  if (replay.json) {
    nlohmann::ordered_json answer = {{"title", replayed.title},
                                     {"date", today()},
                                     {"load", load},
                                     {"machine", to_json(replayed.machine)},
                                     {"verdict", to_json(verdict, tolerance_pct)}};
    answer.update(comparison_json(comparison, replayed.losses));
    print_answer(json_answer(answer));
  } else {
    print_text(fmt::format("{}\n{}{}\n{}{}", to_text(verdict) + "\n", fmt::format("{}; {}\n", replayed.title, load),
                           to_text(replayed.machine),
                           arguments.verbose ? to_text(comparison, replayed.predicted) + "\n" : "",
                           summary_text(comparison, replayed.losses)));
    if (!arguments.verbose) print_note("--verbose prints each operation, rank and cause");
  }
  if (!replayed.ended_by.empty()) {
    print_note(fmt::format("plumb: {} has ended this run: these are its first {} steps that count", replayed.ended_by,
                           replayed.measured.size()));
    return replayed.exit_code;
  }
  return arguments.tolerance_pct && verdict.outcome != Outcome::kPass ? kInputFault : kDone;
}

}}  // namespace plumb::tools
