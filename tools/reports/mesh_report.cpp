#include "tools/reports/mesh_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/spec/rank_layout.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {

std::string mesh_text(const Plan& plan, const Evaluation& evaluation) {
  if (plan.layout.meshes.empty()) return {};
  TextTable ranks{.head = {"pipeline rank", "mesh", "sequences a rank", "peak memory"}};
  for (int rank = 0; rank < plan.layout.pipeline; ++rank) {
    const Layout layout = layout_of_rank(plan.layout, rank);
    const std::int64_t peak = evaluation.simulation.peak_memory_bytes[static_cast<std::size_t>(rank)];
    ranks.rows.push_back({std::to_string(rank), fmt::format("dp{} tp{}", layout.data, layout.tensor),
                          std::to_string(layout.microbatch), bytes_text(static_cast<double>(peak))});
  }
  std::string text = to_text(ranks);
  TextTable ways{.head = {"from", "to", "tensor", "way", "crosses", "time"}};
  for (const Handover& handover : evaluation.priced.handovers) {
    ways.rows.push_back(
        {std::to_string(handover.source), std::to_string(handover.destination),
         bytes_text(static_cast<double>(handover.bytes)), std::string(resharding_name(handover.chosen.kind)),
         bytes_text(static_cast<double>(handover.chosen.crossing_bytes)), duration_text(handover.chosen.time.count())});
  }
  if (!ways.rows.empty()) text += "\n" + to_text(ways);
  return text;
}

nlohmann::ordered_json mesh_json(const Plan& plan, const Evaluation& evaluation) {
  using nlohmann::ordered_json;
  if (plan.layout.meshes.empty()) return ordered_json::object();
  ordered_json meshes = ordered_json::array(), reshardings = ordered_json::array();
  for (int rank = 0; rank < plan.layout.pipeline; ++rank) {
    const Layout layout = layout_of_rank(plan.layout, rank);
    meshes.push_back({{"dp", layout.data}, {"tp", layout.tensor}, {"mbs", layout.microbatch}});
  }
  for (const Handover& handover : evaluation.priced.handovers) {
    reshardings.push_back({{"from", handover.source},
                           {"to", handover.destination},
                           {"bytes", handover.bytes},
                           {"kind", resharding_name(handover.chosen.kind)},
                           {"crossing_bytes", handover.chosen.crossing_bytes},
                           {"time_s", handover.chosen.time.count()}});
  }
  return {{"meshes", std::move(meshes)}, {"reshardings", std::move(reshardings)}};
}

}}  // namespace plumb::tools
