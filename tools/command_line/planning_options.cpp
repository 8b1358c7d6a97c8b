#include "tools/command_line/add_verbs.h"

#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/command_line/option_groups.h"
#include "tools/command_line/option_values.h"
#include "tools/io/usage.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

void add_network(CLI::App* verb, NetworkArguments& network) {
  const auto add = [&](const std::string& name, auto& value, const std::string& what) {
    return of(kOfLinks, verb->add_option(name, value, what));
  };
  add("--links", network.links,
      "shared: messages and collectives of a model share the cluster's links; private: each has its own")
      ->check(CLI::IsMember({"shared", "private"}));
  of(kOfLinks, verb->add_flag("--unfolded", network.unfolded, "simulate every replica, also where one stands for all"));
  verb->add_option("--slow", network.slow, "a rank that computes at a share of its speed, as in rank=17:0.8");
  add("--degrade", network.degrade,
      "links that have a share of their capacity left, or failed, as in nic:node3=0.5, nvlink:rank17=0 or "
      "link:NAME=0.5");
  add("--topology", network.topology, "a JSON file of nodes, devices and links, instead of the cluster's own fabric");
}

void check_memory(const CLI::App& app, const MemoryArguments& arguments) {
  refuse_question_of_plan(app, arguments.question);
}

void check_whatif(const CLI::App& app, const WhatifArguments& arguments) {
  refuse_question_of_plan(app, arguments.question);
  if (arguments.break_even.empty()) return;
  if (arguments.vary.size() != 1)
    throw UsageError("--break-even is between the two values of one --vary: give one, as in --vary layout.pp=4,8");
  if (!arguments.csv.empty() || !arguments.svg.empty() || !arguments.html.empty())
    throw UsageError("--csv, --svg and --html hold a grid of answers, and --break-even has one: leave one away");
}

/// Refuses options that the kind of question leaves without effect: a schedule has costs, a plan has a cluster, and a
/// model is named together with its cluster.
void check_simulate(const CLI::App& app, const SimulateArguments& arguments) {
  if (!arguments.schedule.name.empty()) {
    refuse_group(app, kOfQuestion,
                 "is of a model, and a schedule alone has none: leave it away, or give MODEL CLUSTER");
    refuse_group(app, kOfLinks, "needs a cluster, and a schedule alone has none: give a plan, or MODEL CLUSTER");
    return;
  }
  if (arguments.plan.empty()) return;
  refuse_group(app, kOfSchedule, "is of a schedule: name it with --schedule, or leave it away: a plan has its own");
  refuse_group(app, kOfOrder, "is of a schedule with --costs: name it with --schedule, or leave it away");
  refuse_question_of_plan(app, arguments.question);
}

void add_aim(CLI::App* verb, AimArguments& aim) {
  verb->add_option(
          "--objective", aim.objective,
          "what is best: time of a step, cost (tokens a dollar), energy (tokens a joule), robust (the p95 of a "
          "step under --noise), devices (the fewest with which --tokens are trained in --deadline)")
      ->check(CLI::IsMember({"time", "cost", "energy", "robust", "devices"}));
  verb->add_option("--front", aim.front,
                   "list the layouts that no other beats in both step time and peak memory, or the least step of each "
                   "number of devices")
      ->check(CLI::IsMember({"memory", "devices"}));
  verb->add_option(
      "--devices", aim.devices,
      "numbers of devices that are tried, as in 8|16|32 (default: the cluster's; for cost, energy, devices "
      "and --front devices all up to those that fill nodes)");
  verb->add_option("--noise", aim.noise, "durations that vary, as in cv=0.05 (see `plumb simulate --help`)");
  add_money(verb, aim);
}

/// Refuses options that the rest of the question leaves without effect.
void check_plan(const CLI::App&, const PlanArguments& arguments) {
  const AimArguments& aim = arguments.aim;
  const auto refuse = [](bool given, std::string_view option, std::string_view of) {
    if (given) throw UsageError(fmt::format("{} is of {}: leave it away, or ask for that", option, of));
  };
  refuse(aim.price_usd > 0 && aim.objective != "cost", "--price", "--objective cost");
  refuse((!aim.power.empty() || aim.pue > 0) && aim.objective != "energy", aim.pue > 0 ? "--pue" : "--power",
         "--objective energy");
  refuse((aim.tokens > 0 || aim.deadline_days > 0) && aim.objective != "devices",
         aim.tokens > 0 ? "--tokens" : "--deadline", "--objective devices");
  const auto lists = [](const std::string& text) { return text.find('|') != std::string::npos; };
  const QuestionArguments& question = arguments.question;
  const bool one_setting =
      aim.devices.empty() && !lists(question.cluster) && !lists(question.precision) && !lists(question.optimizer);
  refuse(aim.front == "memory" && !one_setting, "--front memory", "one number of devices, precision and optimizer");
  refuse(arguments.explain && !(one_setting && aim.front.empty() && aim.objective == "time"), "--explain",
         "the shortest steps of one number of devices, precision and optimizer");
}

}  // namespace

void add_plan(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<PlanArguments>();
  CLI::App* verb =
      add_verb(app, chosen, "plan", "search the best layout of a model on a cluster", arguments, plan_verb, check_plan);
  verb->add_option("model", arguments->question.model, "a preset, or a file (a Hugging Face config.json as it is)")
      ->required();
  verb->add_option("cluster", arguments->question.cluster, "a preset (h100:16 for 16 devices) or a file")->required();
  add_question(verb, arguments->question);
  add_aim(verb, arguments->aim);
  verb->add_option("--top", arguments->top, "how many layouts to list")->transform(count_of<int>(1));
  verb->add_option("--headroom", arguments->question.headroom,
                   "share of a predicted peak of memory that stays free besides (default: the stack's own, from runs "
                   "that took more than predicted)")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option(
          "--space", arguments->question.space,
          "usual: what practice uses; wide: also other schedules, groups, buckets and activations in the hosts")
      ->check(CLI::IsMember({"usual", "wide"}));
  verb->add_option("--effort", arguments->effort,
                   "stop behind so many evaluations of layouts, with the best until then; repeats exactly")
      ->transform(count_of<std::int64_t>(1));
  verb->add_option("--time-limit", arguments->time_limit_s,
                   "seconds behind which the search stops, with the best until then")
      ->check(above_zero());
  verb->add_option("--threads", arguments->threads,
                   "that search side by side, with the same answer (default: the cores)")
      ->transform(count_of<int>(1));
  verb->add_option_function<std::string>(
          "--explain",
          [given = arguments.get()](const std::string& family) {
            given->explain = true;
            given->family = family;
          },
          "say what every other value of each key costs; with a FAMILY, as in tp=8,pp=4, why each of its layouts lost")
      ->expected(0, 1)
      ->type_name("[FAMILY]");
  verb->add_option_function<std::string>(
          "--schedule", [given = arguments.get()](const std::string&) { given->searches_order = true; },
          "search: the best layout's order is searched for its own costs, within its own memory")
      ->check(CLI::IsMember({"search"}));
  verb->add_option("-o,--output", arguments->output, "write the plan to a file");
  add_html(verb, arguments->html);
  add_json(verb, arguments->json);
}

void add_simulate(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* verb = add_verb(app, chosen, "simulate", "predict a plan, a layout or a schedule", arguments, simulate_verb,
                            check_simulate);
  verb->add_option("plan_or_model", arguments->plan, "a plan file, or a model with a cluster behind it");
  verb->add_option("cluster", arguments->question.cluster, "a preset or a file");
  add_question(verb, arguments->question);
  verb->add_option("--schedule,--schedule-file", arguments->schedule.name,
                   "a schedule's name or file (.txt, .csv, .json)");
  add_schedule_numbers(verb, arguments->schedule);
  of(kOfOrder, verb->add_option(
                   "--costs", arguments->costs,
                   "of one chunk, as in f=1,i=1,w=1,c=0.1,unit=ms (also b, r, o, x for a move of an activation, u for "
                   "UNSHARD, g for REDUCE_GRAD, weights for a message of weights or of their gradients, host=N where "
                   "the host's memory carries N moves at a time at full speed; lists by stage, or by "
                   "model part, f=1:1:2)"));
  add_sends(verb, arguments->sends);
  of(kOfOrder, add_burst(verb, arguments->burst_kib));
  add_network(verb, arguments->network);
  verb->add_option("--noise", arguments->noise,
                   "durations that vary, as in cv=0.05 (of each compute action; also rank_cv of a rank for a whole "
                   "run, comm_cv of each transfer, dist=lognormal, normal or gamma, runs=1000, seed=1)");
  add_meshes(verb, arguments->meshes, arguments->reshard);
  verb->add_option("--trace", arguments->trace,
                   "write a Chrome trace, to open in ui.perfetto.dev; packed if its name ends in .gz");
  add_html(verb, arguments->html);
  CLI::Option* draw = verb->add_flag("--draw", arguments->draw, "draw the timeline");
  CLI::Option* verbose =
      verb->add_flag("--verbose", arguments->verbose, "also print each rank, the critical path and all sensitivities");
  add_json(verb, arguments->json)->excludes(draw)->excludes(verbose);
}

void add_plan_readers(CLI::App& app, Chosen& chosen) {
  const auto memory = std::make_shared<MemoryArguments>();
  CLI::App* memory_app = add_verb(app, chosen, "memory", "where a plan's bytes go, by rank and over time", memory,
                                  memory_verb, check_memory);
  add_plan_or_question(memory_app, memory->plan, memory->question);
  memory_app->add_flag("--arena", memory->arena,
                       "also plan each rank's temporary tensors into one block of memory, as a device gets it");
  add_json(memory_app, memory->json);

  const auto whatif = std::make_shared<WhatifArguments>();
  CLI::App* whatif_app = add_verb(app, chosen, "whatif", "ask a plan's question over a grid of answers", whatif,
                                  whatif_verb, check_whatif);
  add_plan_or_question(whatif_app, whatif->plan, whatif->question);
  whatif_app
      ->add_option(
          "--vary", whatif->vary,
          "KEY=a,b,c with KEY a field of the plan, as in cluster.network.bandwidth_gb_per_s, or gpus, cluster, "
          "model or stack, the latter by presets or files")
      ->required()
      ->take_all();
  whatif_app->add_option("--break-even", whatif->break_even,
                         "KEY=LOW..HIGH: where in that range the two values of --vary change places");
  whatif_app->add_flag("--replan", whatif->replan, "search the best layout anew for each");
  whatif_app->add_option("--csv", whatif->csv, "write the table to a file");
  whatif_app->add_option("--svg", whatif->svg, "draw the step time over the last key that is varied");
  add_html(whatif_app, whatif->html);
  add_json(whatif_app, whatif->json);
}

}}  // namespace plumb::tools
