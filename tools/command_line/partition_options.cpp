#include "tools/command_line/add_verbs.h"

#include <memory>

#include <CLI/CLI.hpp>

#include "tools/command_line/option_groups.h"
#include "tools/command_line/option_values.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

void add_partition(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<PartitionArguments>();
  CLI::App* verb = add_verb(app, chosen, "partition", "cut a model into pipeline stages, and say what crosses each cut",
                            arguments, partition_verb);
  QuestionArguments& question = arguments->question;
  verb->add_option("graph", question.model,
                   "a preset, a layer graph or model (.json), a profile of PipeDream (.txt), an input of Piper (.json)")
      ->required();
  verb->add_option("cluster", question.cluster, "a preset (h100:4 for four stages) or a file")->required();
  verb->add_option("--global-batch", question.global_batch,
                   "samples of one optimizer step (default: four micro-batches a stage)")
      ->transform(count_of<std::int64_t>(1));
  verb->add_option("--seq", question.sequence, "tokens of a sequence")->transform(count_of<std::int64_t>(1));
  verb->add_option("--precision", question.precision, "bf16, fp16, tf32 or fp32");
  verb->add_option("--optimizer", question.optimizer, "adamw, adamw-8bit, adafactor, lion or sgd");
  verb->add_option("--layout", question.layout,
                   "as in pp=4,dp=2,mbs=16,recompute=full,schedule=gpipe (default: a stage a device)");
  verb->add_option("--method", arguments->method,
                   "what is made even: time, parameters, uniform (numbers of nodes) or type:REGEX (of nodes so named)");
  verb->add_flag("--as-pipedream", arguments->as_pipedream,
                 "of a profile: without transfers and memory, as PipeDream's own optimizer");
  verb->add_flag("--straight", arguments->straight, "of a profile: one device a stage");
  add_json(verb, arguments->json);
}

}}  // namespace plumb::tools
