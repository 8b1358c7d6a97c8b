#include "tools/verbs/calibrate/calibrate_topology.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/calibrate/machine_topology.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/preset_names.h"
#include "tools/inputs/presets.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/machine/find_topology.h"
#include "tools/machine/machine_load.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

std::vector<std::string> cluster_presets() {
  std::vector<std::string> names;
  for (const Preset& preset : presets())
    if (preset.kind == Preset::Kind::kCluster) names.emplace_back(preset.name);
  return names;
}

std::string text_of(const DevicePath& path) {
  constexpr std::array kNames = {"NV", "PIX", "PXB", "PHB", "NODE", "SYS"};
  const std::string name = kNames[static_cast<std::size_t>(path.kind)];
  return path.kind == PathKind::kNvLink ? name + std::to_string(path.links) : name;
}

TextTable table_of(const MachineTopology& found) {
  TextTable table{.head = {""}};
  for (std::size_t gpu = 0; gpu < found.gpus.size(); ++gpu) table.head.push_back(fmt::format("GPU{}", gpu));
  for (const TopologyNic& nic : found.nics) table.head.push_back(nic.name);
  for (std::size_t gpu = 0; gpu < found.gpus.size(); ++gpu) {
    std::vector<std::string> row = {fmt::format("GPU{}", gpu)};
    for (std::size_t other = 0; other < found.gpus.size(); ++other)
      row.push_back(other == gpu ? "X" : text_of(found.between_gpus[gpu][other]));
    for (const DevicePath& path : found.to_nics[gpu]) row.push_back(text_of(path));
    table.rows.push_back(std::move(row));
  }
  return table;
}

struct Read {
  MachineTopology found;
  std::string source;
};

Read read(const CalibrateArguments& arguments) {
  if (!arguments.from.empty()) {
    const std::string& file = arguments.from.front();
    return {read_as(FileKind::kMeasurement, file, [&] { return parse_topology_matrix(read_text_file(file), file); }),
            fmt::format("nvidia-smi topo -m, {}", file)};
  }
  FoundTopology here = find_topology();
  for (const std::string& note : here.notes) print_note(note);
  return {std::move(here.topology), fmt::format("{} of this machine, {}", here.source, today())};
}

}  // namespace

int calibrate_topology(const CalibrateArguments& arguments) {
  if (arguments.from.size() > 1 || !arguments.plan.empty())
    throw UsageError(
        "--only topology reads how the devices of one machine hang together: give --from one file, and no --plan");
  if (arguments.output.empty()) throw UsageError("calibrate writes a cluster: name the file with --output");
  require_writable(arguments.output);
  const Read input = read(arguments);
  std::string base = arguments.base;
  if (base.empty()) base = preset_of_gpu(cluster_presets(), input.found.gpus.front().name);
  if (base.empty())
    throw InputError(
        "what the GPUs compute is none of a topology's: name them with --base, a preset (`plumb clusters`) or a "
        "cluster file");
  const ClusterSpec cluster = cluster_of_topology(input.found, cluster_input(base), input.source);
  const nlohmann::ordered_json document = with_format(FileForm::kCluster, to_json(cluster));
  write_file(arguments.output, json_file_text(document));
  print_note(fmt::format("wrote {}", arguments.output));
  if (arguments.json) {
    print_answer(json_answer(document));
    return kDone;
  }
  std::string answer = to_text(table_of(input.found));
  if (cluster.node_link)
    answer += fmt::format("\n{} GPUs a node, {:.1f} GB/s each way\n", cluster.devices_per_node,
                          cluster.node_link->bytes_per_second / 1e9);
  if (cluster.network) answer += fmt::format("{:.1f} GB/s a NIC\n", cluster.network->bytes_per_second / 1e9);
  print_text(answer);
  return kDone;
}

}}  // namespace plumb::tools
