#include "tools/command_line/command_line.h"

#include <exception>
#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "schedules/error.h"
#include "tools/command_line/command_line_calibrate.h"
#include "tools/command_line/command_line_partition.h"
#include "tools/command_line/command_line_score.h"
#include "tools/command_line/option_values.h"
#include "tools/command_line/report_fault.h"
#include "tools/command_line/usage_fault.h"
#include "tools/io/console.h"
#include "tools/io/usage.h"
#include "tools/io/version.h"
#include "tools/runs/layer_models.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

/// What the command line chose to run.
using Chosen = std::function<int()>;

/// What has been given beside what does not go together.
template <typename Arguments>
using Check = void (*)(const CLI::App&, const Arguments&);

/// Adds a verb whose options fill `arguments`, which live as long as the verb. `check` throws UsageError where an
/// option was given that the others leave without effect.
template <typename Arguments>
CLI::App* add_verb(CLI::App& parent, Chosen& chosen, const std::string& name, const std::string& what,
                   const std::shared_ptr<Arguments>& arguments, int (*verb)(const Arguments&),
                   Check<Arguments> check = nullptr) {
  CLI::App* app = parent.add_subcommand(name, what);
  app->callback([&chosen, app, arguments, verb, check] {
    if (check != nullptr) check(*app, *arguments);
    chosen = [arguments, verb] { return verb(*arguments); };
  });
  return app;
}

// What options are of, as `--help` sorts them and checks refuse them.
constexpr const char* kOfQuestion = "Of a model on a cluster";
constexpr const char* kOfSchedule = "Of a schedule";
constexpr const char* kOfOrder = "Of a schedule's costs";
constexpr const char* kOfLinks = "Of a cluster's links";
constexpr const char* kOfTraining = "Of a training";
constexpr const char* kOfPlanTraining = "Of a plan's training";
constexpr const char* kOfNetwork = "Of a network";
constexpr const char* kOfTimed = "Of --backend timed";

/// Returns the option. Checks refuse those of a group together.
CLI::Option* of(const char* group, CLI::Option* option) {
  return option->group(group);
}

/// Throws UsageError if an option of the group was given.
void refuse_group(const CLI::App& app, const char* group, std::string_view why) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() == group && option->count() > 0)
      throw UsageError(fmt::format("{} {}", option->get_name(), why));
  }
}

CLI::Option* add_json(CLI::App* app, bool& json) {
  return app->add_flag("--json", json, "print one JSON document and nothing else");
}

void add_question(CLI::App* app, QuestionArguments& question) {
  const auto add = [&](const std::string& name, auto& value, const std::string& what) {
    return of(kOfQuestion, app->add_option(name, value, what));
  };
  add("--global-batch", question.global_batch, "sequences (images) of one optimizer step")
      ->transform(count_of<std::int64_t>(1));
  add("--seq", question.sequence, "tokens of a sequence (default: the model's longest)")
      ->transform(count_of<std::int64_t>(1));
  add("--precision", question.precision, "bf16, fp16, fp8, tf32 or fp32 (default: bf16 where the device has it)");
  add("--stack", question.stack,
      "the framework that trains, a preset (`plumb stacks`) or a file (default: Plumb's own executor)");
  add("--optimizer", question.optimizer, "adamw, adamw-8bit, adafactor, lion or sgd (default: adamw)");
  add("--layout", question.layout,
      "what is fixed of dp,tp,pp,cp,ep,etp,v,zero,sp,mbs,recompute,offload,schedule,group,bucket_mib, as in tp=8,pp=2");
  add("--split", question.split, "transformer layers, or a graph's nodes, of each stage, as in 8,8,10,6");
}

/// What the order of a schedule is made of.
void add_order(CLI::App* app, ScheduleArguments& schedule) {
  const auto add = [&](const std::string& name, auto& value, const std::string& what) {
    return of(kOfSchedule, app->add_option(name, value, what));
  };
  add("-p,--ranks", schedule.ranks, "pipeline ranks")->transform(count_of<int>(1));
  add("-m,--microbatches", schedule.microbatches, "micro-batches of a step")->transform(count_of<int>(1));
  add("-v,--chunks", schedule.chunks, "stages a rank (default: 1)")->transform(count_of<int>(1));
  add("-g,--group", schedule.group, "interleaved: micro-batches of a chunk in a row")->transform(count_of<int>(1));
  add("--slices", schedule.slices, "seq1f1b, terapipe: pieces of a sequence (default: 1)")->transform(count_of<int>(1));
  add("--batch", schedule.batch, "pipedream-2bw: micro-batches between optimizer steps (default: -p)")
      ->transform(count_of<int>(1));
  of(kOfSchedule,
     app->add_flag("--vertical-sync", schedule.vertical_sync, "pipedream: one version of the weights a micro-batch"));
  add("--memory", schedule.memory_ratio, "zb-auto: activations that a rank may hold, in multiples of -p (default: 1)");
  of(kOfSchedule,
     app->add_flag("--lenient", schedule.lenient, "read a CSV as PyTorch's parser does, and say what was dropped"));
}

/// What is added to a compute order.
void add_lowering(CLI::App* app, ScheduleArguments& schedule) {
  const auto add = [&](const std::string& name, auto& value, const std::string& what) {
    return of(kOfSchedule, app->add_option(name, value, what));
  };
  add("--checkpoint", schedule.checkpoint, "which micro-batches are recomputed: never, except_last or always")
      ->check(CLI::IsMember({"never", "except_last", "always"}));
  add("--offload", schedule.offload,
      "activations that a rank keeps, those needed soonest; the others wait in host memory")
      ->transform(count_of<int>(0));
  CLI::Option* shard =
      add("--shard", schedule.shard,
          "parameters are sharded (ZeRO 3, FSDP): stages of a rank that stay gathered between uses; 0: none");
  shard->transform(count_of<int>(0));
  of(kOfSchedule,
     app->add_flag("--prefetch", schedule.prefetch, "with --shard: gather one run of a stage's actions ahead"))
      ->needs(shard);
  add("--lowering", schedule.lowering, "who adds the messages: plumb, pytorch or pytorch-deferred (its receives)")
      ->check(CLI::IsMember({"plumb", "pytorch", "pytorch-deferred"}));
}

/// Not of a schedule alone: a plan's messages have receives too.
void add_receives(CLI::App* app, ScheduleArguments& schedule) {
  app->add_option("--receives", schedule.receives,
                  "when a receive is posted: early, one action ahead of its consumer, or late, right before it")
      ->check(CLI::IsMember({"early", "late"}));
}

void add_schedule_numbers(CLI::App* app, ScheduleArguments& schedule) {
  add_order(app, schedule);
  add_lowering(app, schedule);
  add_receives(app, schedule);
}

CLI::Option* add_sends(CLI::App* app, std::string& sends) {
  return app->add_option("--sends", sends, "buffered, rendezvous, or (only checked) blocking their rank")
      ->check(CLI::IsMember({"buffered", "rendezvous", "blocking"}));
}

CLI::Option* add_burst(CLI::App* app, double& burst_kib) {
  return app->add_option(
      "--burst-kib", burst_kib,
      "all that a rank sends leaves by one card, a token bucket that lets so much pass at once after idling");
}

void add_presets(CLI::App& app, Chosen& chosen) {
  const auto add = [&](const std::string& kinds, const std::string& what, int (*show)(const PresetArguments&)) {
    const auto arguments = std::make_shared<PresetArguments>();
    CLI::App* verb = add_verb(app, chosen, kinds, "list the " + what + " presets, or show one", arguments, show);
    verb->add_option("name", arguments->name, "a preset or a file");
    add_json(verb, arguments->json);
  };
  add("models", "model", models_verb);
  add("clusters", "cluster", clusters_verb);
  add("stacks", "training stack", stacks_verb);
}

void add_plan(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<PlanArguments>();
  CLI::App* verb =
      add_verb(app, chosen, "plan", "search the best layout of a model on a cluster", arguments, plan_verb);
  verb->add_option("model", arguments->question.model, "a preset, or a file (a Hugging Face config.json as it is)")
      ->required();
  verb->add_option("cluster", arguments->question.cluster, "a preset (h100:16 for 16 devices) or a file")->required();
  add_question(verb, arguments->question);
  verb->add_option("--top", arguments->top, "how many layouts to list")->transform(count_of<int>(1));
  verb->add_flag("--explain", arguments->explain, "say why each of the others lost");
  verb->add_option("-o,--output", arguments->output, "write the plan to a file");
  add_json(verb, arguments->json);
}

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

void add_meshes(CLI::App* verb, std::string& meshes, std::string& reshard) {
  const auto add = [&](const std::string& name, auto& value, const std::string& what) {
    return of(kOfLinks, verb->add_option(name, value, what));
  };
  add("--meshes", meshes,
      "tensor ranks and replicas of each pipeline rank, as in tp2,dp2 (instead of the plan's tp, dp)");
  add("--reshard", reshard, "how tensors go between meshes of different shape")
      ->check(CLI::IsMember({"direct", "all-gather", "broadcast"}));
}

/// A schedule has costs, a plan has a cluster, and what is planned has a model too.
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
  if (arguments.question.cluster.empty())
    refuse_group(app, kOfQuestion, "is in the plan already: leave it away, or vary it with `plumb whatif`");
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
  of(kOfOrder,
     verb->add_option(
         "--costs", arguments->costs,
         "of one chunk, as in f=1,i=1,w=1,c=0.1,unit=ms (also b, r, o, x for a move of an activation, u for "
         "UNSHARD, g for REDUCE_GRAD, host=N where the host's memory carries N moves at a time at full speed; lists "
         "by stage f=1:1:2)"));
  add_sends(verb, arguments->sends);
  of(kOfOrder, add_burst(verb, arguments->burst_kib));
  add_network(verb, arguments->network);
  verb->add_option("--noise", arguments->noise,
                   "durations that vary, as in cv=0.05 (of each compute action; also rank_cv of a rank for a whole "
                   "run, comm_cv of each transfer, dist=lognormal, normal or gamma, runs=1000, seed=1)");
  add_meshes(verb, arguments->meshes, arguments->reshard);
  verb->add_option("--trace", arguments->trace, "write a Chrome trace, to open in ui.perfetto.dev");
  CLI::Option* draw = verb->add_flag("--draw", arguments->draw, "draw the timeline");
  add_json(verb, arguments->json)->excludes(draw);
}

void add_schedule(CLI::App& app, Chosen& chosen) {
  CLI::App* group = app.add_subcommand("schedule", "list, make, search, show, check or convert schedules");
  group->require_subcommand(1);
  struct Verb {
    const char* name;
    const char* what;
    int (*run)(const ScheduleVerbArguments&);
    bool takes_schedule;
    bool writes;
  };
  for (const Verb& v :
       {Verb{"list", "every schedule by name", schedule_list_verb, false, false},
        Verb{"make", "make a schedule", schedule_make_verb, true, true},
        Verb{"search", "make a schedule for given costs, and say how far it can be from the best", schedule_search_verb,
             true, false},
        Verb{"show", "draw a schedule, or its grid with the faulty cells marked", schedule_show_verb, true, false},
        Verb{"check", "name every fault of a schedule", schedule_check_verb, true, false},
        Verb{"convert", "write a schedule in another form", schedule_convert_verb, true, true}}) {
    const auto arguments = std::make_shared<ScheduleVerbArguments>();
    CLI::App* verb = add_verb(*group, chosen, v.name, v.what, arguments, v.run);
    if (v.takes_schedule) {
      verb->add_option("schedule", arguments->schedule.name,
                       "a name (`plumb schedule list`) or a file (.txt, .csv, .json)")
          ->required();
      add_order(verb, arguments->schedule);
      if (v.run != schedule_search_verb) add_lowering(verb, arguments->schedule);
      if (v.run != schedule_search_verb && v.run != schedule_show_verb) add_receives(verb, arguments->schedule);
    }
    if (v.writes) {
      verb->add_option("-o,--output", arguments->output,
                       "file to write: .txt, .json, or .csv for PyTorch's form (default: print as text)");
      verb->add_flag("--lowered", arguments->lowered, "with messages and optimizer steps");
    }
    if (v.run == schedule_show_verb) {
      verb->add_option("--costs", arguments->costs, "what it is drawn for, as in f=1,b=2,c=0.1 (default: f=i=w=1)");
      verb->add_option("-o,--output", arguments->output, "draw to an .svg file (default: in the terminal)");
    }
    if (v.run == schedule_search_verb) {
      verb->add_option("--costs", arguments->costs, "what it is made for, as in f=1,i=1.5,w=0.8,c=0.1");
      verb->add_option("-o,--output", arguments->output, "file to write: .txt, .json or .csv (default: print as text)");
    }
    if (v.run == schedule_check_verb) {
      add_sends(verb, arguments->sends);
      verb->add_option("--max-activations", arguments->max_activations,
                       "chunks that a rank may hold at once: one number, or one a rank as in 4:3:2:1")
          ->delimiter(':')
          ->transform(count_of<int>(1));
    }
    if (!v.takes_schedule || v.run == schedule_check_verb || v.run == schedule_search_verb)
      add_json(verb, arguments->json);
  }
}

void add_plan_readers(CLI::App& app, Chosen& chosen) {
  const auto memory = std::make_shared<MemoryArguments>();
  CLI::App* memory_app =
      add_verb(app, chosen, "memory", "where a plan's bytes go, by rank and over time", memory, memory_verb);
  memory_app->add_option("plan", memory->plan, "a plan file")->required();
  memory_app->add_flag("--arena", memory->arena,
                       "also plan each rank's temporary tensors into one block of memory, as a device gets it");
  add_json(memory_app, memory->json);

  const auto whatif = std::make_shared<WhatifArguments>();
  CLI::App* whatif_app =
      add_verb(app, chosen, "whatif", "ask a plan's question over a grid of answers", whatif, whatif_verb);
  whatif_app->add_option("plan", whatif->plan, "a plan file")->required();
  whatif_app
      ->add_option("--vary", whatif->vary,
                   "KEY=a,b,c with KEY a field of the plan, as in cluster.network.bandwidth_gb_per_s")
      ->required()
      ->take_all();
  whatif_app->add_flag("--replan", whatif->replan, "search the best layout anew for each");
  whatif_app->add_option("--csv", whatif->csv, "write the table to a file");
  add_json(whatif_app, whatif->json);
}

void add_layer_model(CLI::App* verb, RunArguments& arguments) {
  LayerModelArguments& layer_model = arguments.layer_model;
  const auto add = [&](const std::string& name, auto& value, const std::string& what) {
    return of(kOfNetwork, verb->add_option(name, value, what));
  };
  of(kOfTraining, verb->add_flag("--baseline", arguments.baseline, "train on one rank too, and print both losses"));
  add("--split", layer_model.split,
      "a network's layers by stage: uniform, parameters, type:REGEX, or numbers as in 3,2,2");
  add("--microbatch-size", layer_model.microbatch, "a network's samples of a micro-batch")
      ->transform(count_of<std::int64_t>(1));
  add("--replicas", layer_model.replicas, "a network's data-parallel replicas")->transform(count_of<int>(1));
  CLI::Option* images = add("--images", layer_model.images,
                            "CIFAR-10 in its binary form, to train a network on (default: made-up samples)");
  of(kOfNetwork,
     verb->add_flag("--normalise", layer_model.normalise, "take the images' mean off and divide by their deviation"))
      ->needs(images);
}

/// Each backend has its options, and a network others than a plan.
void check_run(const CLI::App& app, const RunArguments& arguments) {
  const bool is_network = is_layer_model(arguments.plan);
  if (arguments.backend == "timed") {
    constexpr const char* kNoTraining = "is for a training, and --backend timed computes nothing: leave it away";
    for (const char* group : {kOfTraining, kOfPlanTraining, kOfNetwork}) refuse_group(app, group, kNoTraining);
  } else {
    refuse_group(app, kOfTimed, "is for --backend timed: leave it away, or name that");
    if (is_network) refuse_group(app, kOfPlanTraining, "is for the training of a plan: leave it away");
    if (!is_network && !arguments.plan.empty())
      refuse_group(app, kOfNetwork, "is for a network (alexnet, mlp, ...), and a plan has its own: leave it away");
  }
  if (arguments.schedule.name.empty())
    refuse_group(app, kOfSchedule, "is of a schedule: name it with --schedule, or leave it away: a plan has its own");
}

void add_hardware(CLI::App& app, Chosen& chosen) {
  for (const bool validates : {false, true}) {
    const auto arguments = std::make_shared<RunArguments>();
    CLI::App* verb = add_verb(
        app, chosen, validates ? "validate" : "run",
        validates ? "predict a plan, run it, and say how far off the prediction was" : "run a plan on hardware",
        arguments, validates ? validate_verb : run_verb, check_run);
    const auto add = [&](const char* group, const std::string& name, auto& value, const std::string& what) {
      return of(group, verb->add_option(name, value, what));
    };
    verb->add_option("plan", arguments->plan,
                     validates ? "a plan file" : "a plan file, or a network (alexnet, mlp, ...)");
    if (!validates) add_layer_model(verb, *arguments);
    verb->add_option("--backend", arguments->backend,
                     "cpu: real numerics on this machine; cuda: the same on a GPU; timed: ranks that wait instead of "
                     "computing, and real bytes")
        ->check(CLI::IsMember({"cpu", "cuda", "timed"}));
    verb->add_option("--sms", arguments->sms,
                     "backend cuda: how ranks share the SMs: even, all (each on all of them), or a share each (3,1)");
    verb->add_flag("--cuda-graph", arguments->cuda_graph, "backend cuda: capture a step, and launch it as a whole");
    verb->add_option(
            "--gpus", arguments->gpus,
            "backend cuda: one for all ranks, or each rank one of its own (NCCL); each, where there are enough")
        ->check(CLI::IsMember({"one", "each"}));
    verb->add_option(
        "--board", arguments->board,
        "backend cuda: a folder that all ranks see, each a process with its --rank, where they meet without MPI");
    verb->add_option("--rank", arguments->rank, "with --board: which rank this process is")
        ->transform(count_of<int>(0));
    add(kOfTimed, "--costs", arguments->costs, "backend timed: what one chunk costs, with --schedule");
    add(kOfTimed, "--slow", arguments->slow, "backend timed: a slow rank, as in rank=3:0.8 (a share of normal speed)")
        ->take_all();
    add(kOfTimed, "--shrink", arguments->shrink,
        "backend timed: messages of 1/K of their bytes over links of 1/K of their bandwidth");
    verb->add_option("--watchdog", arguments->watchdog_s, "seconds without any movement after which a run fails")
        ->check(above_zero());
    of(kOfTimed, add_sends(verb, arguments->sends));
    of(kOfTimed, add_burst(verb, arguments->burst_kib));
    add(validates ? "Options" : kOfTimed, "--link", arguments->link,
        "predict hops over this measured network (calibrate --only transport), instead of the cluster's");
    verb->add_option("--steps", arguments->steps,
                     validates ? "optimizer steps" : "optimizer steps (0: write the initial weights as a checkpoint)")
        ->transform(count_of<int>(validates ? 1 : 0));
    add(kOfPlanTraining, "--text", arguments->text,
        "file to train on, byte by byte (default: a text that the tool carries)");
    add(kOfTraining, "--seed", arguments->seed, "of the initial weights and of the data's order");
    add(kOfPlanTraining, "--context", arguments->context,
        "cp > 1: keys and values go round a ring, or heads by all-to-all (ulysses)")
        ->check(CLI::IsMember({"ring", "ulysses"}));
    add(kOfPlanTraining, "--clip-norm", arguments->clip_norm, "clip gradients to this global norm")
        ->check(above_zero());
    of(kOfPlanTraining, verb->add_flag("--offload-optimizer", arguments->offload_optimizer,
                                       "keep the optimizer's state in the host's memory and update there"));
    verb->add_option("--trace", arguments->trace, "write the measured timeline as a Chrome trace");
    verb->add_option("--schedule,--schedule-file", arguments->schedule.name,
                     validates ? "backend timed, with --costs: a name or a file (.txt, .csv, .json)"
                               : "replay this schedule instead of the plan's: a name or a file (.txt, .csv, .json)");
    add_schedule_numbers(verb, arguments->schedule);
    add_meshes(verb, arguments->meshes, arguments->reshard);
    if (!validates) {
      add(kOfTraining, "--recompute-every", arguments->recompute_every, "keep only every so many layers' input")
          ->transform(count_of<int>(1));
      add(kOfTraining, "--zero-by", arguments->zero_by, "ZeRO divides elements, or whole layers with an owner each")
          ->check(CLI::IsMember({"element", "layer"}));
      of(kOfTraining, verb->add_flag("--zero-layerwise", arguments->zero_layerwise,
                                     "ZeRO 2 and 3 reduce and gather layer by layer"));
      CLI::Option* folder =
          add(kOfTraining, "--checkpoint-dir", arguments->checkpoint, "folder to keep the newest checkpoint in");
      verb->add_option("--checkpoint-every", arguments->checkpoint_every, "so many steps (default: behind the last)")
          ->transform(count_of<int>(1))
          ->needs(folder);
      verb->add_flag("--resume", arguments->resume, "go on from the checkpoint, up to --steps in all")->needs(folder);
    }
    if (validates) {
      verb->add_option("-o,--output", arguments->output, "write the prediction to a file before the first step");
      verb->add_option("--svg", arguments->svg, "draw the prediction above the measurement");
      verb->add_option("--lanes", arguments->lanes, "write both as one Chrome trace, prediction above measurement");
      verb->add_option("--repeat", arguments->repeat, "run so often from the beginning, and take all steps together")
          ->transform(count_of<int>(1));
      verb->add_option("--recalibrate", arguments->recalibrate_s,
                       "backend cpu: measure this machine for so many seconds first, and predict from that")
          ->check(above_zero());
      verb->add_option("--tolerance", arguments->tolerance_pct,
                       "exit 1 if the step time is off by more than so many percent")
          ->check(zero_or_more());
    }
    add_json(verb, arguments->json);
  }
}

void add_trace(CLI::App& app, Chosen& chosen) {
  CLI::App* group = app.add_subcommand("trace", "read timelines");
  group->require_subcommand(1);
  const auto arguments = std::make_shared<TraceArguments>();
  CLI::App* verb = add_verb(*group, chosen, "info", "what a Chrome trace adds up to", arguments, trace_info_verb);
  verb->add_option("trace", arguments->file, "a trace file")->required();
  add_json(verb, arguments->json);
}

int parse_and_run(CLI::App& app, const Chosen& chosen, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      print_note(fmt::format("plumb: {}", usage_fault(app, {argv + 1, argv + argc}, error)));
      return kUsage;
    }
    std::ostringstream help;  // --help, --version
    app.exit(error, help, help);
    print_answer(help.str());
    finish_answers();
    return kDone;
  }
  const int code = chosen();
  finish_answers();
  return code;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app{
      "Plumb plans pipeline-parallel training, simulates the real schedule and runs the same schedule to show how far "
      "off "
      "the prediction was.",
      "plumb"};
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer(kCountsRead);
  Chosen chosen;
  add_presets(app, chosen);
  add_plan(app, chosen);
  add_simulate(app, chosen);
  add_schedule(app, chosen);
  add_plan_readers(app, chosen);
  add_score(app, chosen);
  add_hardware(app, chosen);
  add_calibrate(app, chosen);
  add_trace(app, chosen);
  add_partition(app, chosen);
  require_numbers(app);
  try {
    return parse_and_run(app, chosen, argc, argv);
  } catch (const std::exception& error) {
    return report_fault(error);
  }
}

}}  // namespace plumb::tools
