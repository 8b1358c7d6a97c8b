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
                   "a preset, a layer graph or model (.json), an ONNX model (.onnx), or a measured graph: a profile of "
                   "PipeDream or DAPPLE (.txt), an "
                   "input of Piper or dnn-partitioning (.json)")
      ->required();
  verb->add_option(
      "cluster", question.cluster,
      "a preset (h100:4 for four stages) or a file; a measured graph may have --levels, or its own machines");
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
  verb->add_option("--levels", arguments->levels,
                   "of a measured graph: COUNT:BYTES_PER_SECOND of each level of machines, from the devices of one "
                   "outwards, as in 4:12.5e9,2:1.25e9");
  verb->add_option("--memory", arguments->memory_bytes, "of a measured graph: bytes of a device")->check(above_zero());
  verb->add_option("--microbatches", arguments->microbatches, "of an input of Piper: micro-batches of a batch")
      ->transform(count_of<std::int64_t>(1));
  verb->add_flag("--straight", arguments->straight, "of a measured graph: one device a stage");
  verb->add_flag("--as-pipedream", arguments->as_pipedream,
                 "of a measured graph: as PipeDream's own optimizer, without transfers and memory");
  verb->add_option("--activation-compression-ratio", arguments->compression_ratio,
                   "of --as-pipedream: transfers count, of activations smaller by this factor")
      ->check(above_zero());
  verb->add_flag("--use-memory-constraint", arguments->memory_constraint,
                 "of --as-pipedream: memory counts, as PipeDream counts it");
  verb->add_flag("--use-fewer-machines", arguments->fewer_machines, "of --as-pipedream: machines may stay unused");
  verb->add_flag("--meshes", arguments->meshes,
                 "stages have meshes of their own (Alpa); each node of a layer graph is sharded over its stage's, and "
                 "in a plan (-o) by the batch");
  verb->add_option("--groups", arguments->groups,
                   "with --meshes: groups of layers that stages are made of, at most (default: 48 of a transformer, 12 "
                   "of a graph, 6 of a long one)")
      ->transform(count_of<int>(1));
  verb->add_option("-o,--output", arguments->output, "write the stages as a plan, which the other verbs take");
  add_json(verb, arguments->json);
}

}}  // namespace plumb::tools
