#include "tools/network_run.h"

#include <algorithm>

#include "executor/layer_split.h"
#include "schedules/error.h"
#include "tools/files.h"
#include "tools/networks.h"
#include "tools/schedule_input.h"

namespace plumb {
namespace {

constexpr std::int64_t kClasses = 10;

SampleData samples_for(const NetworkArguments& network, const std::vector<Layer>& model) {
  SampleData data{.shape = std::get<InputLayer>(model.front()), .outputs = kClasses};
  if (!network.images.empty())
    data.images = parse_cifar10(read_file(network.images), network.images, network.normalise);
  return data;
}

}  // namespace

RunSpec network_run(const RunArguments& arguments) {
  const NetworkArguments& network = arguments.network;
  if (arguments.schedule.name.empty())
    throw InputError("a network runs on a schedule: name it, as in --schedule 1f1b -p 4 -m 8");
  ScheduleArguments wanted = arguments.schedule;
  wanted.replicas = network.replicas > 1;
  const Schedule order = schedule_input(wanted);
  const std::vector<Layer> model = network_layers(arguments.plan, kClasses);
  RunSpec spec{.schedule = lowered_input(order, wanted),
               .microbatch = network.microbatch,
               .sequence = 1,
               .seed = arguments.seed,
               .samples = samples_for(network, model)};
  spec.grid = {.data = network.replicas, .pipeline = static_cast<int>(spec.schedule.ranks.size())};
  int parts = 0;
  for (const StagePlace& place : spec.schedule.stages) parts = std::max(parts, place.model_part + 1);
  const std::vector<std::vector<Layer>> layers = split_layers(model, parts, network.split);
  for (const StagePlace& place : spec.schedule.stages)
    spec.stage_layers.push_back(layers[static_cast<std::size_t>(place.model_part)]);
  for (const auto& actions : spec.schedule.ranks)
    for (const Action& action : actions)
      if (action.op == Op::kRecompute) {
        spec.rebuild = Rebuild::kStage;
        spec.rebuild_which = RebuildWhich::kListed;
      }
  return spec;
}

}  // namespace plumb
