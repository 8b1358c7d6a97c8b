#include "planner/observe/measured_runs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "planner/logs/timed_ops.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

MedianEstimate in_seconds(const std::vector<double>& milliseconds) {
  std::vector<double> values;
  for (const double value : milliseconds) values.push_back(value / 1e3);
  return median_of(std::move(values));
}

/// The kinds of kernels that make up a part of a step. Where no kernel runs, the host launches or the pipeline waits.
struct ProfiledPart {
  std::string name;
  std::vector<TimeComponent> components;
  std::vector<ProfiledKind> kinds;
  bool with_idle = false;
};

const std::vector<ProfiledPart>& profiled_parts() {
  using enum ProfiledKind;
  const auto part = [](TimeComponent component, std::vector<ProfiledKind> kinds) {
    return ProfiledPart{std::string(component_name(component)), {component}, std::move(kinds)};
  };
  static const std::vector<ProfiledPart> all{
      part(TimeComponent::kGemm, {kGemm}),
      part(TimeComponent::kAttention, {kAttention}),
      part(TimeComponent::kMemoryBound, {kMemoryBound, kCopy}),
      part(TimeComponent::kTensorParallel, {kTensorParallel}),
      part(TimeComponent::kContextAndExpert, {kContextAndExpert}),
      part(TimeComponent::kDataParallel, {kDataParallel}),
      part(TimeComponent::kOptimizer, {kOptimizer}),
      {"PP bubble and host", {TimeComponent::kBubble, TimeComponent::kHost}, {kPipeline}, true},
      {"collectives of groups without a name", {}, {kUnknownGroup}}};
  return all;
}

/// Returns the least and the most that a rank's schedule adds up of each operation.
std::vector<ObservedOperations> operations_of(const std::vector<ProfilerTrace>& ranks) {
  std::map<Op, std::vector<double>> seconds;
  for (const ProfilerTrace& rank : ranks) {
    for (const auto& [op, sum] : rank.op_seconds) seconds[op].push_back(sum);
  }
  std::vector<ObservedOperations> operations;
  for (const auto& [op, of_ranks] : seconds) {
    const auto [least, most] = std::ranges::minmax(of_ranks);
    operations.push_back(
        {.name = std::string(op_name(op)), .ops = {op}, .least = median_of({least}), .most = median_of({most})});
  }
  return operations;
}

template <class Rank>
MedianEstimate step_of(const std::vector<Rank>& ranks) {
  std::vector<double> steps;
  for (const Rank& rank : ranks) steps.insert(steps.end(), rank.step_seconds.begin(), rank.step_seconds.end());
  return median_of(std::move(steps));
}

}  // namespace

ObservedRun run_of_log(const TrainingLog& log, const std::map<std::string, PrintedTimer>& timers, const Plan& plan) {
  const std::int64_t batch = plan.training.global_batch;
  if (log.global_batch && *log.global_batch != batch) {
    throw SpecError(fmt::format("{}: its steps have {} samples, and the plan's have {}: give the plan of this run",
                                log.file, *log.global_batch, batch));
  }
  const LoggedStep step{.samples = batch, .tokens = tokens_per_step(plan.training), .devices = plan.cluster.devices};
  ObservedRun run{.framework = log.framework, .step = step_seconds(log, step), .peak_bytes = log.reserved_bytes};
  for (const auto& [name, timer] : timers) {
    std::vector<Op> ops = timed_ops(name);
    if (ops.empty()) continue;
    run.operations.push_back(
        {.name = name, .ops = std::move(ops), .least = in_seconds(timer.least), .most = in_seconds(timer.most)});
  }
  return run;
}

ObservedRun run_of_profiles(const std::vector<ProfilerTrace>& ranks) {
  ObservedRun run{.framework = "PyTorch's profiler", .step = step_of(ranks), .operations = operations_of(ranks)};
  for (const ProfiledPart& part : profiled_parts()) {
    double seconds = 0;
    for (const ProfilerTrace& rank : ranks) {
      if (part.with_idle) seconds += rank.idle_seconds;
      for (const ProfiledKind kind : part.kinds) seconds += rank.seconds[static_cast<std::size_t>(kind)];
    }
    if (seconds == 0) continue;
    run.components.push_back(
        {.name = part.name, .components = part.components, .seconds = seconds / static_cast<double>(ranks.size())});
  }
  return run;
}

ObservedRun run_of_scopes(const std::vector<ScopeTrace>& ranks) {
  ObservedRun run{.framework = "Megatron-LM's trace", .step = step_of(ranks)};
  std::map<std::string, std::vector<double>> seconds;
  for (const ScopeTrace& rank : ranks) {
    for (const auto& [name, sum] : rank.scope_seconds) seconds[name].push_back(sum);
  }
  for (const auto& [name, of_ranks] : seconds) {
    const auto [least, most] = std::ranges::minmax(of_ranks);
    run.operations.push_back(
        {.name = name, .ops = timed_ops(name), .least = median_of({least}), .most = median_of({most})});
  }
  return run;
}

}}  // namespace plumb::planner
