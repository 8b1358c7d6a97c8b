#include "tools/runs/layer_model_run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/limits.h"
#include "tools/inputs/schedule_input.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/runs/layer_models.h"
#include "tools/runs/layer_split.h"
#include "tools/runs/run_layout.h"

namespace plumb { inline namespace tools {
namespace {

constexpr std::int64_t kClasses = 10;

SampleData samples_for(const LayerModelArguments& chosen, const std::vector<Layer>& model) {
  SampleData data{.shape = std::get<InputLayer>(model.front()), .outputs = kClasses};
  if (!chosen.images.empty()) data.images = parse_cifar10(read_file(chosen.images), chosen.images, chosen.normalise);
  return data;
}

}  // namespace

RunSpec layer_model_run(const RunArguments& arguments) {
  const LayerModelArguments& chosen = arguments.layer_model;
  if (arguments.replay.schedule.name.empty())
    throw UsageError("a network runs on a schedule: name it, as in --schedule 1f1b -p 4 -m 8");
  if (chosen.microbatch > kMostSamples) {
    throw UsageError(fmt::format("--microbatch-size {} is more than a network takes at once: give at most {}",
                                 chosen.microbatch, kMostSamples));
  }
  ScheduleArguments wanted = arguments.replay.schedule;
  wanted.replicas = chosen.replicas > 1 || arguments.replay.ranks.meshes.find("dp") != std::string::npos;
  const Schedule order = schedule_input(wanted);
  const std::vector<Layer> model = layer_model(arguments.replay.plan, kClasses);
  RunSpec spec{.schedule = lowered_input(order, wanted),
               .microbatch = chosen.microbatch,
               .sequence = 1,
               .seed = arguments.replay.training.seed,
               .samples = samples_for(chosen, model)};
  spec.grid = {.data = chosen.replicas, .pipeline = static_cast<int>(spec.schedule.ranks.size())};
  int parts = 0;
  for (const StagePlace& place : spec.schedule.stages) parts = std::max(parts, place.model_part + 1);
  const std::vector<std::vector<Layer>> layers = split_layers(model, parts, chosen.split);
  for (const StagePlace& place : spec.schedule.stages)
    spec.stage_layers.push_back(layers[static_cast<std::size_t>(place.model_part)]);
  for (const auto& actions : spec.schedule.ranks)
    for (const Action& action : actions)
      if (action.op == Op::kRecompute) {
        spec.rebuild = Recompute::kStage;
        spec.rebuild_which = RebuildWhich::kListed;
      }
  spec = with_state(with_meshes(std::move(spec), arguments.replay.ranks), arguments.state);
  return spec;
}

}}  // namespace plumb::tools
