#include "tools/inputs/measured_input.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/partition/pipedream_profile.h"
#include "planner/partition/piper_input.h"
#include "planner/partition/placement_input.h"
#include "schedules/error.h"
#include "schedules/forms/strict_json.h"
#include "tools/inputs/inputs.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

constexpr int kMostDevices = 1 << 18;

template <typename Number>
Number number_in(std::string_view text, const std::string& option) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value > 0 && value < 1e30) return value;
  throw UsageError(fmt::format(
      "--levels {}: give COUNT:BYTES_PER_SECOND for each level from the devices of a machine outwards, as in "
      "4:12.5e9,2:1.25e9",
      option));
}

std::vector<MachineLevel> levels_in(const std::string& option) {
  std::vector<MachineLevel> levels;
  std::string_view rest = option;
  double devices = 1;
  for (bool more = true; more;) {
    const auto comma = rest.find(',');
    const std::string_view level = rest.substr(0, comma), count = level.substr(0, level.find(':'));
    const std::string_view rate = count.size() < level.size() ? level.substr(count.size() + 1) : std::string_view{};
    levels.push_back({.count = number_in<int>(count, option), .bytes_per_second = number_in<double>(rate, option)});
    devices *= levels.back().count;
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  if (devices > kMostDevices)
    throw UsageError(
        fmt::format("--levels {}: these are {:.0f} devices, and {} are the most", option, devices, kMostDevices));
  return levels;
}

MeasuredMachines of_cluster(const ClusterSpec& cluster, bool data_sheet) {
  const auto rate = [&](const std::optional<LinkSpec>& link) {
    if (!link) return std::numeric_limits<double>::infinity();
    return link->bytes_per_second * (data_sheet ? 1 : link->efficiency);
  };
  MeasuredMachines machines{.name = cluster.device.name, .levels = {}};
  const int nodes = node_count(cluster), inner = cluster.devices / nodes;
  if (inner > 1 || nodes == 1) machines.levels.push_back({.count = inner, .bytes_per_second = rate(cluster.node_link)});
  if (nodes > 1) machines.levels.push_back({.count = nodes, .bytes_per_second = rate(cluster.network)});
  const std::int64_t reserved = data_sheet ? 0 : cluster.device.reserved_bytes;
  machines.bytes = static_cast<double>(cluster.device.memory_bytes - reserved);
  return machines;
}

}  // namespace

MeasuredInput measured_input(const std::string& text, const std::string& file) {
  MeasuredInput input;
  if (!file.ends_with(".json")) {
    input.graph = parse_pipedream_profile(text, file);
  } else if (const nlohmann::json json = parse_json(text, file); json.contains("maxFPGAs")) {
    input.form = MeasuredInput::Form::kPlacement;
    input.graph = parse_placement_input(text, file);
  } else {
    PiperInput read = parse_piper_input(text, file);
    input.form = MeasuredInput::Form::kPiper;
    input.own = MeasuredMachines{.name = "devices of the file",
                                 .levels = {{.count = read.devices, .bytes_per_second = read.bytes_per_second}},
                                 .bytes = read.bytes};
    input.microbatches = read.microbatches;
    input.graph.swap(read.graph);
  }
  input.order = topological_order(input.graph, file);
  return input;
}

MeasuredMachines measured_machines(const PartitionArguments& arguments, const MeasuredInput& input, bool data_sheet) {
  std::optional<MeasuredMachines> machines = input.own;
  if (!arguments.question.cluster.empty()) {
    machines = of_cluster(cluster_input(arguments.question.cluster), data_sheet);
    if (!arguments.levels.empty())
      throw UsageError("--levels are the machines, and so is the cluster: leave one of them away");
  }
  if (!arguments.levels.empty()) {
    if (!machines) machines = MeasuredMachines{.bytes = std::numeric_limits<double>::infinity()};
    machines->name = "devices";
    machines->levels = levels_in(arguments.levels);
  }
  if (!machines) throw UsageError("no machines are given: name a cluster (v100:8), or give --levels 4:12.5e9,2:1.25e9");
  if (arguments.memory_bytes > 0) machines->bytes = arguments.memory_bytes;
  return *machines;
}

}}  // namespace plumb::tools
