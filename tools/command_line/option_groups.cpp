#include "tools/command_line/option_groups.h"

#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/command_line/option_values.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {

CLI::App* add_verb(CLI::App& parent, Chosen& chosen, const std::string& name, const std::string& what, Chosen run,
                   std::function<void(const CLI::App&)> check) {
  CLI::App* app = parent.add_subcommand(name, what);
  app->callback([&chosen, app, run = std::move(run), check = std::move(check)] {
    if (check) check(*app);
    chosen = run;
  });
  return app;
}

CLI::Option* of(const char* group, CLI::Option* option) {
  return option->group(group);
}

void refuse_group(const CLI::App& app, const char* group, std::string_view why) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() == group && option->count() > 0)
      throw UsageError(fmt::format("{} {}", option->get_name(), why));
  }
}

CLI::Option* add_json(CLI::App* app, bool& json) {
  return app->add_flag("--json", json, "print one JSON document and nothing else");
}

void add_html(CLI::App* app, std::string& file) {
  app->add_option("--html", file, "write the answer as a page, to send to a colleague");
}

void add_question(CLI::App* app, QuestionArguments& question) {
  const auto add = [&](const std::string& name, auto& value, const std::string& what) {
    return of(kOfQuestion, app->add_option(name, value, what));
  };
  add("--global-batch", question.global_batch, "sequences (images) of one optimizer step")
      ->transform(count_of<std::int64_t>(1));
  add("--seq", question.sequence, "tokens of a sequence (default: the model's longest)")
      ->transform(count_of<std::int64_t>(1));
  add("--precision", question.precision,
      "bf16, fp16, fp8, nvfp4, tf32 or fp32 (default: bf16 where the device has it)");
  add("--fp8-recipe", question.fp8_recipe, "how the stack quantizes products: tensorwise, rowwise, blockwise, mxfp8");
  add("--stack", question.stack,
      "the framework that trains, a preset (`plumb stacks`) or a file; plumb for Plumb's own executor (default: "
      "assumed by "
      "layout, model and device)");
  add("--optimizer", question.optimizer, "adamw, adamw-8bit, adafactor, lion or sgd (default: adamw)");
  add("--layout", question.layout,
      "what is fixed of dp tp pp cp cp_kind ep etp v zero shard sp mbs recompute recompute_layers offload schedule "
      "group bucket_mib order meshes, as in tp=8,pp=2; a search takes lists and bounds too, as in tp=2|4|8,pp=..16, or "
      "a "
      "JSON file of them");
  add("--split", question.split,
      "transformer layers, or a graph's nodes, of each stage, as in 8,8,10,6, or a layout of Megatron's, as "
      "in 'Et*3|(tt|)*29L'");
}

void add_money(CLI::App* app, AimArguments& aim) {
  app->add_option("--tokens", aim.tokens, "tokens of the training, as in 15e12")->check(above_zero());
  app->add_option("--deadline", aim.deadline_days, "days in which they are trained")->check(above_zero());
  app->add_option("--price", aim.price_usd, "dollars of a device's hour (default: the cluster's own)")
      ->check(above_zero());
  app->add_option("--power", aim.power,
                  "watts of an idle and of a busy device, as in 100:700 (default: the cluster's)");
  app->add_option("--pue", aim.pue, "power of the site over that of its machines (default: the cluster's, or 1)")
      ->check(CLI::Range(1.0, 10.0));
}

void add_order(CLI::App* app, ScheduleArguments& schedule) {
  const auto add = [&](const std::string& name, auto& value, const std::string& what) {
    return of(kOfSchedule, app->add_option(name, value, what));
  };
  add("-p,--ranks", schedule.ranks, "pipeline ranks")->transform(count_of<int>(1));
  add("-m,--microbatches", schedule.microbatches, "micro-batches of a step")->transform(count_of<int>(1));
  add("-v,--chunks", schedule.chunks, "stages a rank (default: 1)")->transform(count_of<int>(1));
  add("-g,--group", schedule.group, "interleaved: micro-batches of a chunk in a row")->transform(count_of<int>(1));
  add("--slices", schedule.slices, "seq1f1b, slimpipe, svpp, terapipe: pieces of a sequence (default: 1)")
      ->transform(count_of<int>(1));
  add("--batch", schedule.batch, "pipedream-2bw: micro-batches between optimizer steps (default: -p)")
      ->transform(count_of<int>(1));
  add("--node-ranks", schedule.node_ranks, "tawpipe: ranks of a node (default: -p)")->transform(count_of<int>(1));
  of(kOfSchedule,
     app->add_flag("--vertical-sync", schedule.vertical_sync, "pipedream: one version of the weights a micro-batch"));
  add("--memory", schedule.memory_ratio,
      "zb-auto, search: activations that a rank may hold, in multiples of -p times -v (default: 1)");
  of(kOfSchedule,
     app->add_flag("--lenient", schedule.lenient, "read a CSV as PyTorch's parser does, and say what was dropped"));
}

void add_lowering(CLI::App* app, ScheduleArguments& schedule) {
  const auto add = [&](const std::string& name, auto& value, const std::string& what) {
    return of(kOfSchedule, app->add_option(name, value, what));
  };
  add("--checkpoint", schedule.checkpoint, "which micro-batches are recomputed: never, except_last or always")
      ->check(CLI::IsMember({"never", "except_last", "always"}));
  CLI::Option* offload = add("--offload", schedule.offload,
                             "activations that a rank keeps, those needed soonest; the others wait in host memory");
  offload->transform(count_of<int>(0));
  add("--offload-stages", schedule.offload_stages,
      "stages of a rank, those whose activations live longest, all of whose activations wait in host memory")
      ->transform(count_of<int>(0))
      ->excludes(offload);
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

void refuse_question_of_plan(const CLI::App& app, const QuestionArguments& question) {
  if (question.cluster.empty())
    refuse_group(app, kOfQuestion, "is in the plan already: leave it away, or vary it with `plumb whatif`");
}

void add_plan_or_question(CLI::App* verb, std::string& plan, QuestionArguments& question) {
  verb->add_option("plan_or_model", plan, "a plan file, or a model with a cluster behind it")->required();
  verb->add_option("cluster", question.cluster, "a preset or a file");
  add_question(verb, question);
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

}}  // namespace plumb::tools
