#include "tools/runs/timed_input.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "executor/mpi/run_timed_mpi.h"
#include "executor/transport/mpi/launched.h"
#include "planner/evaluate/cluster_network.h"
#include "planner/spec/short_layout.h"
#include "schedules/error.h"
#include "simulator/network/simulate_network.h"
#include "tools/inputs/costs_option.h"
#include "tools/inputs/link_file.h"
#include "tools/inputs/plan_input.h"
#include "tools/inputs/schedule_input.h"
#include "tools/io/console.h"
#include "tools/io/progress.h"
#include "tools/io/usage.h"
#include "tools/runs/cpu_run.h"
#include "tools/runs/plan_run.h"
#include "traces/draw/timeline_title.h"

namespace plumb { inline namespace tools {
namespace {

constexpr double kBytesPerKib = 1024;

/// Returns the input of a plan, and sets `link` to the link of the plan's hops if it is known.
TimedInput timed_plan(const ReplayArguments& arguments, std::optional<MessageLink>& link) {
  if (!arguments.schedule.name.empty())
    throw UsageError(
        "--backend timed replays a plan's own schedule, or --schedule NAME with --costs: give one of them");
  const Plan plan = plan_input(arguments.plan);
  if (!plan.layout.meshes.empty())
    throw InputError(
        fmt::format("{}: its pipeline ranks are meshes of different shape, and the timed backend waits on ranks that "
                    "are all alike: "
                    "give --backend cpu",
                    arguments.plan));
  if (plan.layout.zero > 0 && plan.layout.data > 1) {
    throw InputError(
        fmt::format("{}: its replicas shard their state (ZeRO-{}), and the timed backend gathers no weights: plan with "
                    "--layout zero=0, or give --backend cpu",
                    arguments.plan, plan.layout.zero));
  }
  const Evaluation evaluation = runnable_evaluation(plan);
  link = hop_link(arguments.link, plan.cluster);
  return {.title = fmt::format("{} on {}:{}, {}", plan.model.name, plan.cluster.name, plan.cluster.devices,
                               short_text(plan.layout)),
          .spec = {.schedule = evaluation.lowered,
                   .costs = evaluation.costs,
                   .grid = {.data = plan.layout.data, .pipeline = plan.layout.pipeline}}};
}

TimedInput timed_schedule(const ReplayArguments& arguments) {
  const CostsOption costs = read_option([&] { return parse_costs(arguments.timed.costs); });
  if (arguments.timed.burst_kib > 0 && costs.message_bytes.empty())
    throw UsageError("--burst-kib delays messages that have a size: give mib= and gb_per_s= in --costs");
  const Schedule order = schedule_input(arguments.schedule, costs.chunk);
  const Schedule lowered = lowered_input(order, arguments.schedule);
  return {.title = titled(timeline_title(order), arguments.schedule),
          .spec = {.schedule = lowered,
                   .costs = costs_for(costs, order),
                   .grid = {.pipeline = static_cast<int>(lowered.ranks.size())}}};
}

}  // namespace

TimedInput timed_input(const ReplayArguments& arguments) {
  const bool has_costs = !arguments.timed.costs.empty();
  if (arguments.plan.empty() != has_costs || (has_costs && arguments.schedule.name.empty()))
    throw UsageError("the timed backend takes a plan file, or --schedule NAME with --costs: give one of them");
  if (!arguments.ranks.meshes.empty() || !arguments.ranks.reshard.empty())
    throw UsageError(
        "--meshes and --reshard are for --backend cpu: the timed backend waits on ranks that are all alike");
  std::optional<MessageLink> link;
  if (has_costs && !arguments.link.empty()) link = read_link(arguments.link);
  TimedInput input = has_costs ? timed_schedule(arguments) : timed_plan(arguments, link);
  input.spec.sends = sends_named(arguments.timed.sends);
  if (input.spec.sends == Sends::kBlocking)
    throw UsageError(
        "sends that block their rank are a check of the order only: `plumb schedule check --sends blocking`");
  input.spec.watchdog = Seconds{arguments.watchdog_s};
  std::vector<SlowRank> slow;
  for (const std::string& text : arguments.timed.slow)
    slow.push_back(read_option([&] { return parse_slow_rank(text); }));
  const ProcessGrid one_replica{.pipeline = input.spec.grid.pipeline};
  if (!slow.empty()) input.spec.speeds = rank_speeds(one_replica, slow);
  double burst_bytes = arguments.timed.burst_kib * kBytesPerKib;
  if (link) {
    if (burst_bytes != 0) throw UsageError("a measured link has the card's burst: leave --burst-kib away");
    input.spec.costs = over_link(std::move(input.spec.costs), input.spec.schedule, *link);
    burst_bytes = static_cast<double>(link->burst_bytes);
  }
  input.spec.costs = shrink_bytes(std::move(input.spec.costs), arguments.timed.shrink);
  input.spec.burst_bytes = std::llround(burst_bytes / arguments.timed.shrink);
  input.predicted = simulate(input.spec.schedule, input.spec.costs, NetworkSpec{.speeds = input.spec.speeds},
                             {.sends = input.spec.sends, .burst_bytes = input.spec.burst_bytes});
  return input;
}

std::optional<TimedResult> replay_timed(const TimedInput& input, const std::string& trace, const EndQuestion& ends) {
  const TimedOptions options{.interrupted = interrupted_trace(trace), .ends = ends, .threads = watched_threads()};
  if (launched_ranks() > 0) return run_timed_mpi(input.spec, options);
  const Seconds expected = input.spec.steps * to_seconds(input.predicted.makespan);
  return with_progress("replaying", expected, [&] { return run_timed(input.spec, options); });
}

}}  // namespace plumb::tools
