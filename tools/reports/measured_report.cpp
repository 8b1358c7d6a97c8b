#include "tools/reports/measured_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/partition/downsets.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

double weights_of(const ProfiledNode& node, int tensor) {
  const auto way = std::ranges::find_if(node.ways, [&](const NodeWay& of) { return of.tensor == tensor; });
  return way->weight_bytes;
}

double seconds_alone(const MeasuredInput& input) {
  double seconds = 0;
  for (const int node : input.order)
    seconds += input.graph[static_cast<std::size_t>(node)].ways.front().seconds.count();
  return seconds;
}

/// Returns the entries of the stages, with the keys that the table and the JSON print.
ordered_json stages_json(const MeasuredInput& input, const StagePartition& partition) {
  const ProfiledGraph& graph = input.graph;
  std::vector<int> stage_of(num_vertices(graph), -1);
  for (std::size_t stage = 0; stage < partition.stages.size(); ++stage)
    for (const int node : partition.stages[stage].nodes) stage_of[node] = static_cast<int>(stage);
  NodeSet placed(num_vertices(graph));
  ordered_json stages = ordered_json::array();
  for (std::size_t number = 0; number < partition.stages.size(); ++number) {
    const MeasuredStage& stage = partition.stages[number];
    ordered_json names = ordered_json::array();
    double weights = 0;
    for (const int node : input.order) {
      if (stage_of[node] != static_cast<int>(number)) continue;
      const ProfiledNode& of = graph[static_cast<std::size_t>(node)];
      names.push_back(of.name);
      weights += weights_of(of, stage.tensor);
      placed.set(static_cast<std::size_t>(node));
    }
    ordered_json row = {{"stage", number}, {"nodes", names.size()}};
    row["first"] = names.empty() ? ordered_json(nullptr) : names.front();
    row["last"] = names.empty() ? ordered_json(nullptr) : names.back();
    row["devices"] = stage.replicas * stage.tensor;
    row["replicas"] = stage.replicas;
    row["tensor"] = stage.tensor;
    row["rebuilt"] = stage.rebuilt;
    row["time_s"] = stage.seconds.count();
    row["weight_bytes"] = weights;
    row["sends_bytes"] = bytes_out(graph, placed);
    row["node_names"] = std::move(names);
    stages.push_back(std::move(row));
  }
  return stages;
}

}  // namespace

ordered_json measured_json(const std::string& file, const MeasuredInput& input, const MeasuredAnswer& answer) {
  return {{"graph", file},
          {"stages", stages_json(input, *answer.partition)},
          {"time_of_a_minibatch_s", answer.partition->slowest.count()},
          {"time_on_one_device_s", seconds_alone(input)},
          {"downsets", answer.downsets > 0 ? ordered_json(answer.downsets) : ordered_json(nullptr)},
          {"exact", answer.all_downsets}};
}

std::string measured_text(const std::string& file, const MeasuredInput& input, const MeasuredMachines& machines,
                          const MeasuredAnswer& answer) {
  TextTable table{
      .head = {"stage", "nodes", "from", "to", "devices", "tensor", "rebuilt", "time", "weights", "sends on"}};
  const auto name = [](const ordered_json& value) {
    return value.is_null() ? "-" : value.get<std::string>().substr(0, 24);
  };
  for (const ordered_json& row : stages_json(input, *answer.partition)) {
    table.rows.push_back({row["stage"].dump(), row["nodes"].dump(), name(row["first"]), name(row["last"]),
                          row["devices"].dump(), row["tensor"].dump(), std::to_string(row["rebuilt"].size()),
                          duration_text(row["time_s"]), bytes_text(row["weight_bytes"]),
                          bytes_text(row["sends_bytes"])});
  }
  const double slowest = answer.partition->slowest.count();
  return fmt::format("{} on {} x {}\n\n", file, device_count(machines.levels), machines.name) + to_text(table) +
         fmt::format("\na mini-batch every {}, {:.2f} times as fast as on one device\n", duration_text(slowest),
                     seconds_alone(input) / slowest);
}

double most_faster(const MeasuredInput& input, const MeasuredMachines& machines, const StagePartition& partition) {
  double work = 0;
  for (const int node : input.order) {
    double least = std::numeric_limits<double>::infinity();
    for (const NodeWay& way : input.graph[static_cast<std::size_t>(node)].ways)
      least = std::min(least, way.tensor * way.seconds.count());
    work += least;
  }
  return 1 - work / device_count(machines.levels) / partition.slowest.count();
}

}}  // namespace plumb::tools
