#include "tools/command_line/add_verbs.h"

#include <memory>

#include <CLI/CLI.hpp>

#include "tools/command_line/option_groups.h"
#include "tools/command_line/option_values.h"
#include "tools/runs/layer_models.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

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

}  // namespace

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

}}  // namespace plumb::tools
