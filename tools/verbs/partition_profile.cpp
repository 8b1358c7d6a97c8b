#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/partition/pipedream_optimizer.h"
#include "planner/partition/piper_partition.h"
#include "planner/partition/replicated_partition.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/limits.h"
#include "tools/inputs/measured_input.h"
#include "tools/io/console.h"
#include "tools/io/usage.h"
#include "tools/reports/measured_report.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

void require_measured_options(const PartitionArguments& arguments) {
  const QuestionArguments& question = arguments.question;
  if (arguments.method != "time")
    throw UsageError(
        fmt::format("--method {} is for layer graphs without times: a profile is cut by its times", arguments.method));
  if (question.global_batch > 0 || question.sequence > 0 || !question.precision.empty() ||
      !question.optimizer.empty() || !question.layout.empty()) {
    throw UsageError(
        fmt::format("{} is a profile, whose times were measured: leave --global-batch, --seq, --precision, --optimizer "
                    "and --layout away",
                    question.model));
  }
  if (!arguments.output.empty())
    throw UsageError("a measured graph has no layers that a plan could hold: leave -o away");
  const bool of_pipedream = arguments.compression_ratio > 0 || arguments.memory_constraint || arguments.fewer_machines;
  if (of_pipedream && !arguments.as_pipedream)
    throw UsageError(
        "--activation-compression-ratio, --use-memory-constraint and --use-fewer-machines are PipeDream's: give "
        "--as-pipedream too, or leave them away");
}

bool in_pipers_space(const PartitionArguments& arguments, const MeasuredInput& input) {
  const bool piper = input.form == MeasuredInput::Form::kPiper && !arguments.as_pipedream && !arguments.straight;
  if (arguments.microbatches > 0 && !piper)
    throw UsageError("--microbatches is for an input of Piper, cut in its own space: leave it away");
  return piper;
}

std::optional<StagePartition> as_pipedream(const PartitionArguments& arguments, const MeasuredInput& input,
                                           const MeasuredMachines& machines) {
  PipedreamOptions options{.levels = machines.levels,
                           .straight = arguments.straight,
                           .fewer_machines = arguments.fewer_machines,
                           .memory_bytes = {},
                           .compression_ratio = {}};
  if (arguments.memory_constraint) options.memory_bytes = machines.bytes;
  if (arguments.compression_ratio > 0) options.compression_ratio = arguments.compression_ratio;
  return pipedream_partition(input.graph, options, arguments.question.model);
}

/// Returns the exact partition at the downsets, or at as many of them as can be looked at.
std::optional<StagePartition> exact(const PartitionArguments& arguments, const MeasuredInput& input,
                                    const MeasuredMachines& machines, const Downsets& downsets) {
  if (in_pipers_space(arguments, input)) {
    const auto slowest_link = std::ranges::min_element(machines.levels, {}, &MachineLevel::bytes_per_second);
    return piper_partition(input.graph, downsets,
                           {.devices = device_count(machines.levels),
                            .bytes = machines.bytes,
                            .bytes_per_second = slowest_link->bytes_per_second,
                            .microbatches = arguments.microbatches > 0 ? arguments.microbatches : input.microbatches});
  }
  // Inputs of dnn-partitioning say nothing about weights, which replicas would have to sum.
  const bool straight = arguments.straight || input.form == MeasuredInput::Form::kPlacement;
  return replicated_partition(input.graph, downsets,
                              {.levels = machines.levels, .bytes = machines.bytes, .straight = straight});
}

/// Returns at how many downsets a graph may be cut for so many devices, in bounded time.
std::size_t most_downsets(const PartitionArguments& arguments, const MeasuredInput& input,
                          const MeasuredMachines& machines) {
  const bool one_kind_of_place = machines.levels.size() == 1 || in_pipers_space(arguments, input);
  const int devices = device_count(machines.levels);
  return one_kind_of_place && devices <= kFewDevices ? kMostDownsets : kMostClusters;
}

}  // namespace

int partition_profile(const PartitionArguments& arguments, const std::string& text) {
  require_measured_options(arguments);
  const std::string& file = arguments.question.model;
  const MeasuredInput input = measured_input(text, file);
  const MeasuredMachines machines = measured_machines(arguments, input, arguments.as_pipedream);
  MeasuredAnswer answer;
  if (arguments.as_pipedream) {
    answer.partition = as_pipedream(arguments, input, machines);
  } else {
    const std::size_t most = most_downsets(arguments, input, machines);
    const Downsets downsets = downsets_of(input.graph, input.order, most, kMostClusters);
    answer.partition = exact(arguments, input, machines, downsets);
    answer.downsets = downsets.sets.size();
    answer.all_downsets = downsets.all;
  }
  if (!answer.partition) {
    print_note(fmt::format("plumb: no way to cut {} fits {} devices of {}: use more of them, or larger ones", file,
                           device_count(machines.levels), bytes_text(machines.bytes)));
    return kInfeasible;
  }
  arguments.json ? print_answer(json_answer(measured_json(file, input, answer)))
                 : print_text(measured_text(file, input, machines, answer));
  if (!arguments.as_pipedream && !answer.all_downsets)
    print_note(
        fmt::format("{}: the graph has more ways to be cut than can be looked at: it is cut at {} places of one "
                    "order of its nodes, and no cut would be more than {:.1f} % faster",
                    file, answer.downsets - 2, 100 * most_faster(input, machines, *answer.partition)));
  return kDone;
}

}}  // namespace plumb::tools
