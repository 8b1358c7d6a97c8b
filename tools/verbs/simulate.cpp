#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/evaluate/cluster_network.h"
#include "planner/evaluate/noisy_evaluation.h"
#include "planner/search/evaluate_plan.h"
#include "planner/spec/short_layout.h"
#include "planner/spec/topology_spec.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "simulator/network/network_noise.h"
#include "simulator/network/simulate_network.h"
#include "simulator/simulate.h"
#include "simulator/steady_state.h"
#include "tools/inputs/costs_file.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/noise_option.h"
#include "tools/inputs/plan_input.h"
#include "tools/inputs/schedule_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/terminal.h"
#include "tools/io/usage.h"
#include "tools/pages/simulation_page.h"
#include "tools/pages/write_page.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/mesh_report.h"
#include "tools/reports/precision_note.h"
#include "tools/reports/simulation_context.h"
#include "tools/reports/simulation_report.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/table.h"
#include "tools/runs/run_layout.h"
#include "tools/verbs/verbs.h"
#include "traces/chrome/chrome_trace.h"
#include "traces/draw/draw.h"
#include "traces/draw/timeline_title.h"

namespace plumb { inline namespace tools {
namespace {

SimulationOptions options_of(const SimulateArguments& arguments) {
  return {.sends = arguments.sends == "buffered" ? Sends::kBuffered : Sends::kRendezvous,
          .burst_bytes = std::llround(arguments.burst_kib * 1024)};
}

NetworkOptions network_of(const NetworkArguments& arguments) {
  NetworkOptions options{.share_links = arguments.links == "shared",
                         .replicas = arguments.unfolded ? Replicas::kUnfolded : Replicas::kFolded};
  for (const std::string& text : arguments.slow)
    options.slow.push_back(read_option([&] { return parse_slow_rank(text); }));
  for (const std::string& text : arguments.degrade)
    options.degraded.push_back(read_option([&] { return parse_degraded_links(text); }));
  if (!arguments.topology.empty())
    options.topology = read_as(FileKind::kTopology, arguments.topology,
                               [&] { return parse_topology(read_text_file(arguments.topology), arguments.topology); });
  return options;
}

/// One host for all ranks, whose memory carries so many moves at full speed.
void add_host(NetworkSpec& network, const Schedule& lowered, const CostTable& costs, double moves) {
  double fastest = 0;
  for (const Op op : {Op::kOffload, Op::kReload}) {
    for (std::size_t stage = 0; stage < lowered.stages.size(); ++stage)
      fastest = std::max(fastest, move_rate(costs, {.op = op, .stage = static_cast<std::int32_t>(stage)}));
    for (const StagePlace& stage : lowered.stages) network.move_routes[move_number(op)].push_back(stage.rank);
  }
  if (!(fastest > 0)) throw UsageError("--costs: host= shares the time of moves: give x=, and --offload");
  network.links = {{"host_memory", moves * fastest}};
  network.routes.assign(lowered.ranks.size(), {.uses = {{0, 1}}});  // a route is a channel's, and so a rank's
}

/// A schedule without a cluster has no links to share but that to its host, and its ranks may be slow.
NetworkSpec ranks_alone(const Schedule& schedule, const CostTable& costs, double host_moves,
                        const NetworkArguments& arguments) {
  NetworkSpec network{
      .speeds = rank_speeds({.pipeline = static_cast<int>(schedule.ranks.size())}, network_of(arguments).slow)};
  if (host_moves > 0) add_host(network, schedule, costs, host_moves);
  return network;
}

/// The slow ranks that were asked for, and how long the critical path computes on them. Those of a tensor group are one
/// replica each and keep step, and one replica stands for all that are alike.
std::vector<SlowRankOnPath> slow_ranks_on(const std::vector<CriticalStep>& path, const ProcessGrid& grid,
                                          const std::vector<SlowRank>& slow) {
  const int replicas = world_size(grid) / grid.pipeline;
  const std::vector<SimTime> added = contributions(path);
  std::vector<SlowRankOnPath> ranks;
  for (const SlowRank& rank : slow) {
    const std::vector<int> group = group_ranks(grid, Group::kTensor, rank.world_rank);
    SlowRankOnPath& found = ranks.emplace_back(SlowRankOnPath{.world_rank = rank.world_rank, .speed = rank.speed});
    for (std::size_t i = 0; i < path.size(); ++i) {
      const int world_rank = path[i].rank * replicas + path[i].replica;
      if (is_compute(path[i].action.op) && std::ranges::find(group, world_rank) != group.end())
        found.on_path += added[i];
    }
  }
  return ranks;
}

/// `plan` and its evaluation are null for a schedule without a model.
void report(const Simulation& simulation, const ReportContext& context, const std::string& title,
            const SimulateArguments& arguments, const Plan* plan = nullptr, const Evaluation* evaluation = nullptr) {
  if (!context.no_sensitivity.empty()) print_note("no sensitivities: " + context.no_sensitivity);
  if (!arguments.trace.empty()) {
    write_file(arguments.trace, [&](const TextSink& take) { write_chrome_trace(simulation.timeline, take); });
    print_note(fmt::format("wrote {}: open it at https://ui.perfetto.dev", arguments.trace));
  }
  if (!arguments.html.empty()) write_page(arguments.html, simulation_page(title, simulation, context, plan), plan);
  if (arguments.json) {
    nlohmann::ordered_json document = {{"title", title}};
    document.update(simulation_json(simulation, context));
    if (plan != nullptr) {
      add_stack(document, plan->training);
      document.update(interval_json(*plan, simulation));
      document.update(mesh_json(*plan, *evaluation));
    }
    print_answer(json_answer(document));
    return;
  }
  print_text(title + ": " + simulation_verdict(simulation, context, plan) + "\n");
  if (plan != nullptr) print_text(stack_text(plan->training) + "; " + interval_text(*plan, simulation) + "\n");
  if (plan != nullptr && !plan->layout.meshes.empty()) print_text("\n" + mesh_text(*plan, *evaluation));
  if (const std::string reasons = simulation_text(simulation, context); !reasons.empty()) print_text("\n" + reasons);
  if (arguments.verbose) print_text(simulation_details(simulation, context));
  if (arguments.draw) print_answer("\n" + draw(simulation.timeline, terminal_draw_options()));
}

/// Returns the variation of the step if it is asked for: `steps` makes its runs, of that many data-parallel replicas.
std::optional<NoiseReport> noise_of(const SimulateArguments& arguments, int replicas,
                                    const std::function<NoisySteps(const NoiseSpec&)>& steps) {
  if (arguments.noise.empty()) return {};
  NoiseReport report{.spec = read_option([&] { return parse_noise(arguments.noise); })};
  report.spec.replicas = replicas;
  report.steps = steps(report.spec);
  return report;
}

/// A rank's micro-batches, over all ranks, from which on a timeline is made only for --trace and --draw.
constexpr std::int64_t kLongRun = 500'000;

/// The period of a schedule that is worth no timeline unless asked for; 0 for others.
int period_of_long_run(const SimulateArguments& arguments, const ChunkCosts& costs) {
  const ScheduleArguments& schedule = arguments.schedule;
  const bool wants_timeline = !arguments.trace.empty() || !arguments.html.empty() || arguments.draw ||
                              !arguments.noise.empty() || arguments.sends == "blocking" || arguments.burst_kib > 0 ||
                              !arguments.network.slow.empty() || !arguments.network.degrade.empty();
  const std::int64_t size = static_cast<std::int64_t>(schedule.ranks) * schedule.microbatches;
  if (wants_timeline || size < kLongRun || names_schedule_file(schedule.name)) return 0;
  return period_of(schedule.name, {.ranks = schedule.ranks, .group = schedule.group, .costs = costs});
}

/// From the steady state of a shorter schedule where that is proven.
int simulate_long_run(const SimulateArguments& arguments, const CostsOption& costs, int period) {
  const auto order = [&](int microbatches) {
    ScheduleArguments shorter = arguments.schedule;
    shorter.microbatches = microbatches;
    return schedule_input(shorter, costs.chunk);
  };
  Schedule first_periods = order(4 * period + arguments.schedule.microbatches % period);
  const Simulation simulation =
      simulate_repeating({.lowered = [&](int m) { return lowered_input(order(m), arguments.schedule); },
                          .microbatches = arguments.schedule.microbatches,
                          .period = period},
                         costs_for(costs, first_periods), options_of(arguments).sends);
  first_periods.microbatches = arguments.schedule.microbatches;  // what the title says
  print_note(fmt::format("engine: {}; no timeline and no critical path of so long a run: ask for --trace or --draw",
                         simulation.engine));
  report(simulation, {.unit = costs.unit, .unit_given = arguments.costs.find("unit=") != std::string::npos},
         titled(timeline_title(first_periods), arguments.schedule), arguments);
  return kDone;
}

int simulate_schedule(const SimulateArguments& arguments) {
  const CostsOption costs = costs_input(arguments.costs);
  if (arguments.burst_kib > 0 && costs.message_bytes.empty())
    throw UsageError("--burst-kib delays messages that have a size: give mib= and gb_per_s= in --costs");
  const int period = costs.host_moves > 0 ? 0 : period_of_long_run(arguments, costs.chunk);
  if (period > 0) return simulate_long_run(arguments, costs, period);
  const Schedule order = schedule_input(arguments.schedule, costs.chunk);
  const Schedule lowered = lowered_input(order, arguments.schedule);
  if (arguments.sends == "blocking") {
    require_valid(lowered, {.sends = Sends::kBlocking});
    print_note("runs to its end with sends that block their rank; the times below are those of rendezvous sends");
  }
  const CostTable table = costs_for(costs, order);
  const NetworkSpec network = ranks_alone(lowered, table, costs.host_moves, arguments.network);
  SimulationOptions options = options_of(arguments);
  options.record_memory = false;  // costs without bytes count chunks instead
  const Simulation simulation = simulate(lowered, table, network, options);
  const auto noisy = [&](const NoiseSpec& noise) {
    return simulate_noise(lowered, table, network, noise, options.sends);
  };
  const ReportContext known{.noise = noise_of(arguments, 1, noisy),
                            .unit = costs.unit,
                            .unit_given = arguments.costs.find("unit=") != std::string::npos};
  ReportContext context = explained(known, lowered, table, simulation);
  if (simulation.engine == "events") add_shared_sensitivity(context, lowered, table, network, options.sends);
  context.slow_ranks = slow_ranks_on(simulation.critical_path, {.pipeline = static_cast<int>(lowered.ranks.size())},
                                     network_of(arguments.network).slow);
  report(simulation, context, titled(timeline_title(order), arguments.schedule), arguments);
  return kDone;
}

/// `pricing` is the plan's, `priced` its layout's prices where the search has left them.
int simulate_plan(Pricing& pricing, const Plan& plan, std::optional<PricedLayout> priced,
                  const SimulateArguments& arguments) {
  if (!arguments.reshard.empty() && plan.layout.meshes.empty())
    throw UsageError("--reshard is for messages between meshes of different shape: give --meshes");
  if (arguments.sends == "blocking") {
    throw UsageError("--sends blocking checks a schedule: give it with --schedule, or to `plumb schedule check`");
  }
  const Evaluation evaluation =
      evaluate(pricing, plan, std::move(priced),
               {.simulation = options_of(arguments),
                .network = network_of(arguments.network),
                .receives = arguments.schedule.receives == "late" ? Receives::kLate : Receives::kEarly,
                .resharding = resharding_kind(arguments.reshard)});
  if (evaluation.exists) {
    for (const std::string& note : stack_notes(pricing, plan.layout)) print_note(note);
    if (evaluation.infeasible.empty()) {
      for (const std::string& note : notes_of(evaluation)) print_note(note);
      if (const std::string note = slower_than_bf16(plan, evaluation.simulation); !note.empty()) print_note(note);
    }
    const auto noisy = [&](const NoiseSpec& noise) {
      return noisy_steps_of(evaluation, noise, options_of(arguments).sends);
    };
    const NetworkOptions options = network_of(arguments.network);
    ReportContext context = context_of(plan, evaluation, options, options_of(arguments).sends);
    context.noise = noise_of(arguments, plan.layout.data, noisy);
    context.slow_ranks = slow_ranks_on(evaluation.simulation.critical_path, replica_grid_of(plan.layout), options.slow);
    report(evaluation.simulation, context,
           fmt::format("{} on {}:{}, {}", plan.model.name, plan.cluster.name, plan.cluster.devices,
                       short_text(plan.layout)),
           arguments, &plan, &evaluation);
  }
  if (evaluation.infeasible.empty()) return kDone;
  print_note("plumb: " + evaluation.infeasible);
  return kInfeasible;
}

}  // namespace

int simulate_verb(const SimulateArguments& arguments) {
  const bool asks_model = !arguments.question.cluster.empty();
  const bool asks_schedule = !arguments.schedule.name.empty();
  if (int(asks_schedule) + int(!arguments.plan.empty()) != 1) {
    throw UsageError(
        "simulate takes a plan file, or MODEL CLUSTER --global-batch N, or --schedule NAME with --costs: give one of "
        "them");
  }
  if (asks_schedule && (!arguments.reshard.empty() || !arguments.meshes.empty()))
    throw UsageError("--meshes and --reshard are for the ranks of a model: leave them away");
  for (const std::string& path : {arguments.trace, arguments.html})
    if (!path.empty()) require_writable(path);
  if (asks_schedule) return simulate_schedule(arguments);
  if (!asks_model) {
    const Plan plan = on_meshes(plan_input(arguments.plan), arguments.meshes);
    Pricing pricing(plan.model, plan.cluster, plan.training);
    return simulate_plan(pricing, plan, std::nullopt, arguments);
  }

  QuestionArguments question = arguments.question;
  question.model = arguments.plan;
  question.headroom = 0;  // what is asked about is told, also where it is tight
  PlannedQuestion planned = plan_question(question, {.keep = 1});
  if (planned.search.ranked.empty()) {
    print_note(fmt::format("plumb: {}", planned.search.infeasible));
    return kInfeasible;
  }
  if (!planned.switched.empty()) arguments.json ? print_note(planned.switched) : print_text(planned.switched + "\n");
  Evaluation& found = planned.search.ranked.front();
  const Plan plan = on_meshes(plan_of(planned, found), arguments.meshes);
  if (!arguments.meshes.empty()) {
    Pricing pricing(plan.model, plan.cluster, plan.training);
    return simulate_plan(pricing, plan, std::nullopt, arguments);
  }
  found.priced.notes.clear();  // they are about a choice of split, and the plan has made it
  return simulate_plan(planned.pricing, plan, std::move(found.priced), arguments);
}

}}  // namespace plumb::tools
