#include "executor/run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/mpi/launched.h"
#include "schedules/error.h"
#include "tools/console.h"
#include "tools/files.h"
#include "tools/lower_plan.h"
#include "tools/plan_input.h"
#include "tools/run_report.h"
#include "tools/schedule_input.h"
#include "tools/table.h"
#include "tools/timed_input.h"
#include "tools/verbs/verbs.h"
#include "traces/chrome_trace.h"

namespace plumb {
namespace {

constexpr int kDefaultSteps = 10;

/// The plan's own schedule, or the one that is asked for, on the plan's ranks and micro-batches.
RunSpec scheduled(RunSpec spec, const Plan& plan, ScheduleArguments schedule) {
  if (schedule.name.empty()) {
    if (schedule.offload || schedule.shard)
      throw InputError("--offload and --shard change a schedule: name it with --schedule");
    return spec;
  }
  if (schedule.ranks == 0) schedule.ranks = spec.grid.pipeline;
  if (schedule.microbatches == 0) schedule.microbatches = spec.schedule.microbatches;
  schedule.replicas = spec.grid.data > 1;
  const Schedule order = schedule_input(schedule);
  return with_schedule(std::move(spec), plan, order, lowered_input(order, schedule));
}

void write_trace(const Timeline& last_step, const RunArguments& arguments) {
  if (arguments.trace.empty()) return;
  write_file(arguments.trace, write_chrome_trace(last_step));
  print_note(fmt::format("wrote {}: the last step, to open at https://ui.perfetto.dev", arguments.trace));
}

/// Nothing is trained: what the replay lasts, beside what was predicted.
int run_by_the_clock(const RunArguments& arguments) {
  TimedInput input = timed_input(arguments);
  input.spec.steps = arguments.steps > 0 ? arguments.steps : kDefaultSteps;
  const std::optional<TimedResult> of_all_ranks = replay_timed(input);
  if (!of_all_ranks) return kDone;  // the first process reports
  const TimedResult& result = *of_all_ranks;
  write_trace(result.timelines.back(), arguments);
  if (arguments.json) {
    nlohmann::ordered_json times = nlohmann::ordered_json::array();
    for (const Seconds time : result.step_seconds) times.push_back(time.count());
    print_answer(nlohmann::ordered_json{{"title", input.title},
                                        {"predicted_step_time_s", to_seconds(input.predicted.makespan).count()},
                                        {"step_times_s", times}}
                     .dump(2) +
                 "\n");
    return kDone;
  }
  print_answer(fmt::format("{}: {} steps by the clock on {} {}, {} predicted\n\n", input.title,
                           result.step_seconds.size(), world_size(input.spec.grid),
                           launched_ranks() > 0 ? "processes" : "threads",
                           duration_text(to_seconds(input.predicted.makespan).count())));
  TextTable table{.head = {"step", "step time"}};
  for (std::size_t i = 0; i < result.step_seconds.size(); ++i)
    table.rows.push_back({std::to_string(i + 1), duration_text(result.step_seconds[i].count())});
  print_answer(to_text(table));
  return kDone;
}

}  // namespace

int run_verb(const RunArguments& arguments) {
  if (!arguments.trace.empty()) require_writable(arguments.trace);
  if (arguments.backend == "timed") return run_by_the_clock(arguments);
  require_cpu_arguments(arguments);
  const Plan plan = plan_input(arguments.plan);
  const Predicted predicted = runnable_prediction(plan);
  const int steps = arguments.steps > 0 ? arguments.steps : kDefaultSteps;
  RunSpec spec = scheduled(lower_plan(plan, predicted,
                                      {.steps = steps,
                                       .seed = arguments.seed,
                                       .text = training_text(arguments.text),
                                       .text_name = text_name(arguments.text)}),
                           plan, arguments.schedule);
  spec.watchdog = Seconds{arguments.watchdog_s};

  const Seconds expected = steps * to_seconds(predicted.simulation.makespan);
  const RunResult result = with_progress("running", expected, [&spec] { return run(spec); });

  write_trace(result.timelines.back(), arguments);
  if (arguments.json) {
    print_answer(run_json(result).dump(2) + "\n");
    return kDone;
  }
  print_answer(fmt::format("{}, {}{}: {} steps on the cpu\n\n", plan.model.name, to_text(plan.layout),
                           arguments.schedule.name.empty() ? "" : ", replayed as " + spec.schedule.name,
                           result.losses.size()));
  TextTable table{.head = {"step", "loss", "step time"}};
  for (std::size_t i = 0; i < result.losses.size(); ++i) {
    const bool timed = result.step_seconds.size() == result.losses.size();
    table.rows.push_back({std::to_string(i + 1), fmt::format("{:.4f}", result.losses[i]),
                          timed ? duration_text(result.step_seconds[i].count()) : "-"});
  }
  print_answer(to_text(table));
  return kDone;
}

}  // namespace plumb
