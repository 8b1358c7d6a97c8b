#include "tools/command_line.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/command_line_calibrate.h"
#include "tools/command_line_partition.h"
#include "tools/command_line_score.h"
#include "tools/console.h"
#include "tools/option_numbers.h"
#include "tools/report_fault.h"
#include "tools/verbs/verbs.h"
#include "tools/version.h"

namespace plumb { inline namespace tools {
namespace {

/// What the command line chose to run.
using Chosen = std::function<int()>;

/// Adds a verb whose options fill `arguments`, which live as long as the verb.
template <typename Arguments>
CLI::App* add_verb(CLI::App& parent, Chosen& chosen, const std::string& name, const std::string& what,
                   const std::shared_ptr<Arguments>& arguments, int (*verb)(const Arguments&)) {
  CLI::App* app = parent.add_subcommand(name, what);
  app->callback([&chosen, arguments, verb] { chosen = [arguments, verb] { return verb(*arguments); }; });
  return app;
}

void add_json(CLI::App* app, bool& json) {
  app->add_flag("--json", json, "print one JSON document and nothing else");
}

void add_question(CLI::App* app, QuestionArguments& question) {
  app->add_option("--global-batch", question.global_batch, "sequences (images) of one optimizer step")
      ->check(above_zero());
  app->add_option("--seq", question.sequence, "tokens of a sequence (default: the model's longest)")
      ->check(above_zero());
  app->add_option("--precision", question.precision,
                  "bf16, fp16, fp8, tf32 or fp32 (default: bf16 where the device has it)");
  app->add_option("--stack", question.stack,
                  "the framework that trains, a preset (`plumb stacks`) or a file (default: Plumb's own executor)");
  app->add_option("--optimizer", question.optimizer, "adamw, adamw-8bit, adafactor, lion or sgd (default: adamw)");
  app->add_option(
      "--layout", question.layout,
      "what is fixed of dp,tp,pp,cp,ep,etp,v,zero,sp,mbs,recompute,offload,schedule,group,bucket_mib, as in tp=8,pp=2");
  app->add_option("--split", question.split, "transformer layers, or a graph's nodes, of each stage, as in 8,8,10,6");
}

void add_schedule_numbers(CLI::App* app, ScheduleArguments& schedule) {
  app->add_option("-p,--ranks", schedule.ranks, "pipeline ranks");
  app->add_option("-m,--microbatches", schedule.microbatches, "micro-batches of a step");
  app->add_option("-v,--chunks", schedule.chunks, "stages a rank");
  app->add_option("-g,--group", schedule.group, "interleaved: micro-batches of a chunk in a row");
  app->add_option("--slices", schedule.slices, "seq1f1b, terapipe: pieces of a sequence");
  app->add_option("--batch", schedule.batch, "pipedream-2bw: micro-batches between optimizer steps");
  app->add_flag("--vertical-sync", schedule.vertical_sync, "pipedream: one version of the weights for a micro-batch");
  app->add_option("--memory", schedule.memory_ratio, "zb-auto: activations that a rank may hold, in multiples of -p");
  app->add_option("--checkpoint", schedule.checkpoint,
                  "which micro-batches are recomputed: never, except_last or always")
      ->check(CLI::IsMember({"never", "except_last", "always"}));
  app->add_option("--receives", schedule.receives,
                  "when a receive is posted: early, one action ahead of its consumer, or late, right before it")
      ->check(CLI::IsMember({"early", "late"}));
  app->add_option("--offload", schedule.offload,
                  "activations that a rank keeps, those needed soonest; the others wait in host memory");
  CLI::Option* shard = app->add_option(
      "--shard", schedule.shard,
      "parameters are sharded (ZeRO 3, FSDP): stages of a rank that stay gathered between uses; 0: none");
  app->add_flag("--prefetch", schedule.prefetch, "with --shard: gather one run of a stage's actions ahead")
      ->needs(shard);
  app->add_option("--lowering", schedule.lowering,
                  "who adds the messages: plumb, pytorch or pytorch-deferred (its receives)")
      ->check(CLI::IsMember({"plumb", "pytorch", "pytorch-deferred"}));
  app->add_flag("--lenient", schedule.lenient, "read a CSV as PyTorch's parser does, and say what was dropped");
}

void add_sends(CLI::App* app, std::string& sends) {
  app->add_option("--sends", sends, "buffered, rendezvous, or (only checked) blocking their rank")
      ->check(CLI::IsMember({"buffered", "rendezvous", "blocking"}));
}

void add_burst(CLI::App* app, double& burst_kib) {
  app->add_option(
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
  verb->add_option("--top", arguments->top, "how many layouts to list")->check(above_zero());
  verb->add_flag("--explain", arguments->explain, "say why each of the others lost");
  verb->add_option("-o,--output", arguments->output, "write the plan to a file");
  add_json(verb, arguments->json);
}

void add_network(CLI::App* verb, NetworkArguments& network) {
  verb->add_option("--links", network.links,
                   "shared: messages and collectives of a model share the cluster's links; private: each has its own")
      ->check(CLI::IsMember({"shared", "private"}));
  verb->add_flag("--unfolded", network.unfolded, "simulate every replica, also where one stands for all");
  verb->add_option("--slow", network.slow, "a rank that computes at a share of its speed, as in rank=17:0.8");
  verb->add_option("--degrade", network.degrade,
                   "links that have a share of their capacity left, or failed, as in nic:node3=0.5, nvlink:rank17=0 or "
                   "link:NAME=0.5");
  verb->add_option("--topology", network.topology,
                   "a JSON file of nodes, devices and links, instead of the cluster's own fabric");
}

void add_meshes(CLI::App* verb, std::string& meshes, std::string& reshard) {
  verb->add_option("--meshes", meshes,
                   "tensor ranks and replicas of each pipeline rank, as in tp2,dp2 (instead of the plan's tp, dp)");
  verb->add_option("--reshard", reshard, "how tensors go between meshes of different shape")
      ->check(CLI::IsMember({"direct", "all-gather", "broadcast"}));
}

void add_simulate(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* verb =
      add_verb(app, chosen, "simulate", "predict a plan, a layout or a schedule", arguments, simulate_verb);
  verb->add_option("plan_or_model", arguments->plan, "a plan file, or a model with a cluster behind it");
  verb->add_option("cluster", arguments->question.cluster, "a preset or a file");
  add_question(verb, arguments->question);
  verb->add_option("--schedule,--schedule-file", arguments->schedule.name,
                   "a schedule's name or file (.txt, .csv, .json)");
  add_schedule_numbers(verb, arguments->schedule);
  verb->add_option(
      "--costs", arguments->costs,
      "of one chunk, as in f=1,i=1,w=1,c=0.1,unit=ms (also b, r, o, x for a move of an activation, u for "
      "UNSHARD, g for REDUCE_GRAD, host=N where the host's memory carries N moves at a time at full speed; lists "
      "by stage f=1:1:2)");
  add_sends(verb, arguments->sends);
  add_burst(verb, arguments->burst_kib);
  add_network(verb, arguments->network);
  verb->add_option("--noise", arguments->noise,
                   "durations that vary, as in cv=0.05 (of each compute action; also rank_cv of a rank for a whole "
                   "run, comm_cv of each transfer, dist=lognormal, normal or gamma, runs=1000, seed=1)");
  add_meshes(verb, arguments->meshes, arguments->reshard);
  verb->add_option("--trace", arguments->trace, "write a Chrome trace, to open in ui.perfetto.dev");
  verb->add_flag("--draw", arguments->draw, "draw the timeline");
  add_json(verb, arguments->json);
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
      add_schedule_numbers(verb, arguments->schedule);
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
          ->check(above_zero());
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
  verb->add_flag("--baseline", arguments.baseline, "train on one rank too, and print both losses");
  verb->add_option("--split", layer_model.split,
                   "a network's layers by stage: uniform, parameters, type:REGEX, or numbers as in 3,2,2");
  verb->add_option("--microbatch-size", layer_model.microbatch, "a network's samples of a micro-batch")
      ->check(above_zero());
  verb->add_option("--replicas", layer_model.replicas, "a network's data-parallel replicas")->check(above_zero());
  verb->add_option("--images", layer_model.images,
                   "CIFAR-10 in its binary form, to train a network on (default: made-up samples)");
  verb->add_flag("--normalise", layer_model.normalise, "take the images' mean off and divide by their deviation");
}

void add_hardware(CLI::App& app, Chosen& chosen) {
  for (const bool validates : {false, true}) {
    const auto arguments = std::make_shared<RunArguments>();
    CLI::App* verb = add_verb(
        app, chosen, validates ? "validate" : "run",
        validates ? "predict a plan, run it, and say how far off the prediction was" : "run a plan on hardware",
        arguments, validates ? validate_verb : run_verb);
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
    verb->add_option("--rank", arguments->rank, "with --board: which rank this process is")->check(zero_or_more());
    verb->add_option("--costs", arguments->costs, "backend timed: what one chunk costs, with --schedule");
    verb->add_option("--slow", arguments->slow,
                     "backend timed: a slow rank, as in rank=3:0.8 (a share of normal speed)")
        ->take_all();
    verb->add_option("--shrink", arguments->shrink,
                     "backend timed: messages of 1/K of their bytes over links of 1/K of their bandwidth");
    verb->add_option("--watchdog", arguments->watchdog_s, "seconds without any movement after which a run fails")
        ->check(above_zero());
    add_sends(verb, arguments->sends);
    add_burst(verb, arguments->burst_kib);
    verb->add_option("--link", arguments->link,
                     "predict hops over this measured network (calibrate --only transport), instead of the cluster's");
    verb->add_option("--steps", arguments->steps,
                     validates ? "optimizer steps" : "optimizer steps (0: write the initial weights as a checkpoint)")
        ->check(validates ? above_zero() : zero_or_more());
    verb->add_option("--text", arguments->text,
                     "file to train on, byte by byte (default: a text that the tool carries)");
    verb->add_option("--seed", arguments->seed, "of the initial weights and of the data's order");
    verb->add_option("--context", arguments->context,
                     "cp > 1: keys and values go round a ring, or heads by all-to-all (ulysses)")
        ->check(CLI::IsMember({"ring", "ulysses"}));
    verb->add_option("--clip-norm", arguments->clip_norm, "clip gradients to this global norm")->check(above_zero());
    verb->add_flag("--offload-optimizer", arguments->offload_optimizer,
                   "keep the optimizer's state in the host's memory and update there");
    verb->add_option("--trace", arguments->trace, "write the measured timeline as a Chrome trace");
    verb->add_option("--schedule,--schedule-file", arguments->schedule.name,
                     validates ? "backend timed, with --costs: a name or a file (.txt, .csv, .json)"
                               : "replay this schedule instead of the plan's: a name or a file (.txt, .csv, .json)");
    add_schedule_numbers(verb, arguments->schedule);
    add_meshes(verb, arguments->meshes, arguments->reshard);
    if (!validates) {
      verb->add_option("--recompute-every", arguments->recompute_every, "keep only every so many layers' input")
          ->check(above_zero());
      verb->add_option("--zero-by", arguments->zero_by, "ZeRO divides elements, or whole layers with an owner each")
          ->check(CLI::IsMember({"element", "layer"}));
      verb->add_flag("--zero-layerwise", arguments->zero_layerwise, "ZeRO 2 and 3 reduce and gather layer by layer");
      CLI::Option* folder =
          verb->add_option("--checkpoint-dir", arguments->checkpoint, "folder to keep the newest checkpoint in");
      verb->add_option("--checkpoint-every", arguments->checkpoint_every, "so many steps (default: behind the last)")
          ->check(above_zero())
          ->needs(folder);
      verb->add_flag("--resume", arguments->resume, "go on from the checkpoint, up to --steps in all")->needs(folder);
    }
    if (validates) {
      verb->add_option("-o,--output", arguments->output, "write the prediction to a file before the first step");
      verb->add_option("--svg", arguments->svg, "draw the prediction above the measurement");
      verb->add_option("--lanes", arguments->lanes, "write both as one Chrome trace, prediction above measurement");
      verb->add_option("--repeat", arguments->repeat, "run so often from the beginning, and take all steps together")
          ->check(above_zero());
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

/// What is wrong with the options, where the option library's own words would not say it.
std::string usage_sentence(const CLI::ParseError& error) {
  const std::string said = error.what();
  const auto after = [&said](std::string_view start) { return said.substr(std::min(said.size(), start.size())); };
  constexpr std::string_view kUnread = "Could not convert: ", kUnknown = "The following argument was not expected: ",
                             kUnknowns = "The following arguments were not expected: ";
  if (said.starts_with(kUnread)) return fmt::format("{}: this value is not one that it takes", after(kUnread));
  if (said.starts_with(kUnknown)) return fmt::format("{} is not known here", after(kUnknown));
  if (said.starts_with(kUnknowns)) return fmt::format("{} are not known here", after(kUnknowns));
  if (said.starts_with("A subcommand is required")) return "a verb is wanted";
  if (const std::size_t at = said.find(": At Most "); at != std::string::npos)
    return fmt::format("{} is given more often than once", said.substr(0, at));
  if (const std::size_t at = said.find(" missing"); at != std::string::npos && said.find(" required ") < at)
    return fmt::format("{} has no value", said.substr(0, said.find(": ")));
  return said;
}

/// One line for a mistake in the options, and where help is.
int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {  // --help, --version
    std::ostringstream help;
    app.exit(error, help, help);
    print_answer(help.str());
    finish_answers();
    return kDone;
  }
  print_note(fmt::format("plumb: {}; `plumb --help` and `plumb VERB --help` say what there is", usage_sentence(error)));
  return kUsage;
}

int parse_and_run(CLI::App& app, const Chosen& chosen, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error);
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
