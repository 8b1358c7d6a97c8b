#include "tools/verbs/simulate_meshes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/search/bounds.h"
#include "planner/spec/short_layout.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "tools/io/console.h"
#include "tools/io/usage.h"
#include "tools/reports/table.h"
#include "tools/runs/mesh_prediction.h"

namespace plumb { inline namespace tools {
namespace {

void refuse_other_options(const SimulateArguments& arguments) {
  const NetworkArguments& network = arguments.network;
  if (!network.slow.empty() || !network.degrade.empty() || !network.topology.empty() || network.unfolded ||
      !arguments.noise.empty() || !arguments.trace.empty() || !arguments.html.empty() || arguments.draw) {
    throw UsageError(
        "--meshes prices each message by itself: leave out --slow, --degrade, --topology, --unfolded, --noise, "
        "--trace, --html and --draw");
  }
}

nlohmann::ordered_json document_of(const std::string& title, const UnequalStages& stages,
                                   const Simulation& simulation) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array(), handovers = nlohmann::ordered_json::array();
  for (std::size_t rank = 0; rank < stages.layouts.size(); ++rank) {
    const Layout& layout = stages.layouts[rank];
    ranks.push_back({{"dp", layout.data},
                     {"tp", layout.tensor},
                     {"mbs", layout.microbatch},
                     {"peak_memory_bytes", simulation.peak_memory_bytes[rank]}});
  }
  for (const Handover& handover : stages.handovers) {
    handovers.push_back({{"from", handover.source},
                         {"to", handover.destination},
                         {"bytes", handover.bytes},
                         {"kind", resharding_name(handover.chosen.kind)},
                         {"crossing_bytes", handover.chosen.crossing_bytes},
                         {"time_s", handover.chosen.time.count()}});
  }
  return {{"title", title},
          {"step_time_s", to_seconds(simulation.makespan).count()},
          {"bubble_ratio", simulation.bubble_ratio},
          {"ranks", ranks},
          {"reshardings", handovers}};
}

}  // namespace

int simulate_meshes(const Plan& plan, const SimulateArguments& arguments) {
  refuse_other_options(arguments);
  const MeshPrediction told = predict_meshes(plan, arguments.meshes, arguments.reshard);
  const UnequalStages& stages = told.stages;
  const Simulation& simulation = told.evaluation.simulation;
  const auto shortfall = memory_shortfall(simulation.peak_memory_bytes, plan.cluster.device);

  const std::string title = fmt::format("{} on {}:{}, {}, meshes {}", plan.model.name, plan.cluster.name,
                                        plan.cluster.devices, short_text(plan.layout), arguments.meshes);
  if (arguments.json) {
    print_answer(json_answer(document_of(title, stages, simulation)));
  } else {
    TextTable ranks{.head = {"pipeline rank", "mesh", "sequences a rank", "peak memory"}};
    for (std::size_t rank = 0; rank < stages.layouts.size(); ++rank) {
      const Layout& layout = stages.layouts[rank];
      ranks.rows.push_back({std::to_string(rank), fmt::format("dp{} tp{}", layout.data, layout.tensor),
                            std::to_string(layout.microbatch),
                            bytes_text(static_cast<double>(simulation.peak_memory_bytes[rank]))});
    }
    TextTable ways{.head = {"from", "to", "tensor", "way", "crosses", "time"}};
    for (const Handover& handover : stages.handovers) {
      ways.rows.push_back({std::to_string(handover.source), std::to_string(handover.destination),
                           bytes_text(static_cast<double>(handover.bytes)),
                           std::string(resharding_name(handover.chosen.kind)),
                           bytes_text(static_cast<double>(handover.chosen.crossing_bytes)),
                           duration_text(handover.chosen.time.count())});
    }
    print_text(fmt::format("{}: {} a step, bubble {:.1f} %\n\n{}", title,
                           duration_text(to_seconds(simulation.makespan).count()), 100 * simulation.bubble_ratio,
                           to_text(ranks)));
    if (!ways.rows.empty()) print_text("\n" + to_text(ways));
  }
  if (!shortfall) return kDone;
  print_note("plumb: " + to_text(*shortfall));
  return kInfeasible;
}

}}  // namespace plumb::tools
