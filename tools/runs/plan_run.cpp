#include "tools/runs/plan_run.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "planner/search/evaluate_plan.h"
#include "planner/spec/rank_layout.h"
#include "planner/spec/short_layout.h"
#include "schedules/error.h"
#include "tools/inputs/plan_input.h"
#include "tools/inputs/presets.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/runs/run_layout.h"

namespace plumb { inline namespace tools {
namespace {

const Preset& carried_text() {
  return *std::ranges::find(presets(), Preset::Kind::kText, &Preset::kind);
}

}  // namespace

void require_cpu_arguments(const ReplayArguments& arguments) {
  if (arguments.plan.empty())
    throw UsageError("the cpu backend trains a plan's model: give a plan file, or replay by --backend timed");
}

OwnPlan own_plan_input(const std::string& path, const std::string& meshes) {
  Plan plan = on_meshes(plan_input(path), meshes);
  std::string title = fmt::format("{}, {}", plan.model.name, short_text(plan.layout));
  if (!plan.training.stack) return {std::move(plan), std::move(title)};
  title +=
      fmt::format(", planned for the stack {} and priced anew for Plumb's own executor", plan.training.stack->name);
  plan.training.stack.reset();
  plan.training.stack_assumed.clear();
  if (plan.layout.order != Layout().order) title += ", whose launcher places the ranks";
  plan.layout.order = Layout().order;
  plan.prediction.reset();
  return {std::move(plan), std::move(title)};
}

Plan launched_at_once(Plan plan) {
  for (KernelSample& sample : plan.cluster.samples) sample.host = Seconds{0};
  return plan;
}

Evaluation runnable_evaluation(const Plan& plan, const std::string& reshard) {
  EvaluationOptions options{.network = NetworkOptions{}};
  if (!plan.layout.meshes.empty())
    options.resharding = reshard.empty() ? ReshardingKind::kAllGather : resharding_kind(reshard);  // as RunSpec
  Pricing pricing(plan.model, plan.cluster, plan.training);
  Evaluation evaluation = evaluate(pricing, plan, std::nullopt, options);
  if (!evaluation.exists) throw SpecError(evaluation.infeasible);
  return evaluation;
}

void require_room(double bytes) {
  constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes > memory)
    throw SpecError(
        fmt::format("the ranks of this plan take {:.1f} GiB together, and this machine has {:.1f} GiB: run a "
                    "smaller model here, or replay it by --backend timed",
                    bytes / kBytesPerGib, memory / kBytesPerGib));
}

Evaluation cpu_evaluation(const Plan& plan, const std::string& reshard) {
  Evaluation evaluation = runnable_evaluation(plan, reshard);
  double bytes = 0;
  for (std::size_t rank = 0; rank < evaluation.simulation.peak_memory_bytes.size(); ++rank) {
    bytes += static_cast<double>(evaluation.simulation.peak_memory_bytes[rank]) *
             devices_of_rank(plan.layout, static_cast<int>(rank));
  }
  require_room(bytes);
  return evaluation;
}

std::string training_text(const std::string& path) {
  return path.empty() ? std::string(carried_text().text) : read_file(path);
}

std::string text_name(const std::string& path) {
  return path.empty() ? std::string(carried_text().name) : path;
}

RunSettings training_settings(const TrainingArguments& training, const std::string& backend, int steps) {
  return {.steps = steps,
          .seed = training.seed,
          .text = training_text(training.text),
          .text_name = text_name(training.text),
          .context_attention = context_attention(training.context),
          .clip_norm = training.clip_norm,
          .offload_optimizer = training.offload_optimizer,
          .layerwise = backend != "cuda"};
}

}}  // namespace plumb::tools
