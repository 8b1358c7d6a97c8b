#include "tools/command_line/add_verbs.h"

#include <memory>

#include <CLI/CLI.hpp>

#include "tools/command_line/option_groups.h"
#include "tools/command_line/option_values.h"
#include "tools/runs/layer_models.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

void add_layer_model(CLI::App* verb, LayerModelArguments& layer_model) {
  const auto add = [&](const std::string& name, auto& value, const std::string& what) {
    return of(kOfNetwork, verb->add_option(name, value, what));
  };
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

void add_cuda(CLI::App* verb, CudaArguments& cuda) {
  verb->add_option("--sms", cuda.sms,
                   "backend cuda: how ranks share the SMs: even, all (each on all of them), or a share each (3,1)");
  verb->add_flag("--cuda-graph", cuda.graph, "backend cuda: capture a step, and launch it as a whole");
  verb->add_option("--gpus", cuda.gpus,
                   "backend cuda: one for all ranks, or each rank one of its own (NCCL); each, where there are enough")
      ->check(CLI::IsMember({"one", "each"}));
  verb->add_option(
      "--board", cuda.board,
      "backend cuda: a folder that all ranks see, each a process with its --rank, where they meet without MPI");
  verb->add_option("--rank", cuda.rank, "with --board: which rank this process is")->transform(count_of<int>(0));
}

void add_timed(CLI::App* verb, TimedArguments& timed) {
  of(kOfTimed, verb->add_option("--costs", timed.costs, "backend timed: what one chunk costs, with --schedule"));
  of(kOfTimed,
     verb->add_option("--slow", timed.slow, "backend timed: a slow rank, as in rank=3:0.8 (a share of normal speed)"))
      ->take_all();
  of(kOfTimed, verb->add_option("--shrink", timed.shrink,
                                "backend timed: messages of 1/K of their bytes over links of 1/K of their bandwidth"));
  of(kOfTimed, add_sends(verb, timed.sends));
  of(kOfTimed, add_burst(verb, timed.burst_kib));
}

void add_training(CLI::App* verb, TrainingArguments& training) {
  const auto add = [&](const char* group, const std::string& name, auto& value, const std::string& what) {
    return of(group, verb->add_option(name, value, what));
  };
  add(kOfPlanTraining, "--text", training.text,
      "file to train on, byte by byte (default: a text that the tool carries)");
  add(kOfTraining, "--seed", training.seed, "of the initial weights and of the data's order");
  add(kOfPlanTraining, "--context", training.context,
      "cp > 1: keys and values go round a ring, or heads by all-to-all (ulysses)")
      ->check(CLI::IsMember({"ring", "ulysses"}));
  add(kOfPlanTraining, "--clip-norm", training.clip_norm, "clip gradients to this global norm")->check(above_zero());
  of(kOfPlanTraining, verb->add_flag("--offload-optimizer", training.offload_optimizer,
                                     "keep the optimizer's state in the host's memory and update there"));
}

void add_state(CLI::App* verb, StateArguments& state) {
  of(kOfTraining, verb->add_option("--recompute-every", state.recompute_every, "keep only every so many layers' input"))
      ->transform(count_of<int>(1));
  of(kOfTraining,
     verb->add_option("--zero-by", state.zero_by, "ZeRO divides elements, or whole layers with an owner each"))
      ->check(CLI::IsMember({"element", "layer"}));
  of(kOfTraining, verb->add_flag("--zero-layerwise", state.zero_layerwise,
                                 "ZeRO 2 and 3 reduce and gather layer by layer, as plans always do on the CPU"));
}

void add_checkpoint(CLI::App* verb, CheckpointArguments& checkpoint) {
  CLI::Option* folder = of(
      kOfTraining, verb->add_option("--checkpoint-dir", checkpoint.folder, "folder to keep the newest checkpoint in"));
  verb->add_option("--checkpoint-every", checkpoint.every, "so many steps (default: behind the last)")
      ->transform(count_of<int>(1))
      ->needs(folder);
  verb->add_flag("--resume", checkpoint.resume, "go on from the checkpoint, up to --steps in all")->needs(folder);
}

/// Texts in which the two verbs differ where they share an option.
struct ReplayTexts {
  const char* plan;
  const char* schedule;
  const char* steps;
  int fewest_steps;
  const char* link_group;
};

void add_replay(CLI::App* verb, ReplayArguments& replay, const ReplayTexts& texts) {
  verb->add_option("plan", replay.plan, texts.plan);
  verb->add_option("--backend", replay.backend,
                   "cpu: real numerics on this machine; cuda: the same on a GPU; timed: ranks that wait instead of "
                   "computing, and real bytes")
      ->check(CLI::IsMember({"cpu", "cuda", "timed"}));
  add_cuda(verb, replay.cuda);
  add_timed(verb, replay.timed);
  verb->add_option("--watchdog", replay.watchdog_s, "seconds without any movement after which a run fails")
      ->check(above_zero());
  of(texts.link_group,
     verb->add_option("--link", replay.link,
                      "predict hops over this measured network (calibrate --only transport), instead of the "
                      "cluster's"));
  verb->add_option("--steps", replay.steps, texts.steps)->transform(count_of<int>(texts.fewest_steps));
  add_training(verb, replay.training);
  verb->add_option("--trace", replay.trace, "write the measured timeline as a Chrome trace");
  verb->add_option("--schedule,--schedule-file", replay.schedule.name, texts.schedule);
  add_schedule_numbers(verb, replay.schedule);
  add_meshes(verb, replay.ranks.meshes, replay.ranks.reshard);
}

/// Refuses options of another backend, and options of a plan for a network or the reverse.
void check_replay(const CLI::App& app, const ReplayArguments& replay) {
  const bool is_network = is_layer_model(replay.plan);
  if (replay.backend == "timed") {
    constexpr const char* kNoTraining = "is for a training, and --backend timed computes nothing: leave it away";
    for (const char* group : {kOfTraining, kOfPlanTraining, kOfNetwork}) refuse_group(app, group, kNoTraining);
  } else {
    refuse_group(app, kOfTimed, "is for --backend timed: leave it away, or name that");
    if (is_network) refuse_group(app, kOfPlanTraining, "is for the training of a plan: leave it away");
    if (!is_network && !replay.plan.empty())
      refuse_group(app, kOfNetwork, "is for a network (alexnet, mlp, ...), and a plan has its own: leave it away");
  }
  if (replay.schedule.name.empty())
    refuse_group(app, kOfSchedule, "is of a schedule: name it with --schedule, or leave it away: a plan has its own");
}

void check_run(const CLI::App& app, const RunArguments& arguments) {
  check_replay(app, arguments.replay);
}

void check_validate(const CLI::App& app, const ValidateArguments& arguments) {
  check_replay(app, arguments.replay);
}

void add_run(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* verb = add_verb(app, chosen, "run", "run a plan on hardware", arguments, run_verb, check_run);
  add_replay(verb, arguments->replay,
             {.plan = "a plan file, or a network (alexnet, mlp, ...)",
              .schedule = "replay this schedule instead of the plan's: a name or a file (.txt, .csv, .json)",
              .steps = "optimizer steps (0: write the initial weights as a checkpoint)",
              .fewest_steps = 0,
              .link_group = kOfTimed});
  of(kOfTraining, verb->add_flag("--baseline", arguments->baseline, "train on one rank too, and print both losses"));
  add_layer_model(verb, arguments->layer_model);
  add_state(verb, arguments->state);
  add_checkpoint(verb, arguments->checkpoint);
  add_json(verb, arguments->replay.json);
}

void add_validate(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<ValidateArguments>();
  CLI::App* verb = add_verb(app, chosen, "validate", "predict a plan, run it, and say how far off the prediction was",
                            arguments, validate_verb, check_validate);
  add_replay(verb, arguments->replay,
             {.plan = "a plan file",
              .schedule = "backend timed, with --costs: a name or a file (.txt, .csv, .json)",
              .steps = "optimizer steps",
              .fewest_steps = 1,
              .link_group = "Options"});
  verb->add_option("-o,--output", arguments->output, "write the prediction to a file before the first step");
  verb->add_option("--svg", arguments->svg, "draw the prediction above the measurement");
  add_html(verb, arguments->html);
  verb->add_option("--lanes", arguments->lanes, "write both as one Chrome trace, prediction above measurement");
  verb->add_option("--repeat", arguments->repeat, "run so often from the beginning, and take all steps together")
      ->transform(count_of<int>(1));
  verb->add_option("--recalibrate", arguments->recalibrate_s,
                   "backend cpu: measure this machine for so many seconds first, and predict from that")
      ->check(above_zero());
  verb->add_option("--tolerance", arguments->tolerance_pct,
                   "PASS if step time and memory are off by no more than so many percent (10); given: exit 1 otherwise")
      ->check(zero_or_more());
  verb->add_flag("--verbose", arguments->verbose, "print each operation, rank and cause as well");
  add_json(verb, arguments->replay.json);
}

}  // namespace

void add_hardware(CLI::App& app, Chosen& chosen) {
  add_run(app, chosen);
  add_validate(app, chosen);
}

}}  // namespace plumb::tools
