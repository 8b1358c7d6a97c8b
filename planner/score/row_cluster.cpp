#include "planner/score/row_cluster.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "planner/score/row_fields.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

/// Returns a count of the cluster's, which may have a source.
std::optional<int> count_at(const json& cluster, const std::string& path) {
  for (const std::string& place : {path, path + ".value"}) {
    if (const auto count = integer_at(cluster, place)) return static_cast<int>(*count);
  }
  return std::nullopt;
}

int devices_in_node(const json& cluster) {
  return count_at(cluster, "node.devices").value_or(1);
}

/// Sets a node's devices as printed, unless the preset's node is a domain of several hosts: then a host's are printed.
/// The devices share NICs as those of the preset do.
void take_printed_node(json& cluster, const RowReader& reader) {
  const auto printed = reader.count("gpus_per_node");
  const int devices = devices_in_node(cluster);
  if (!printed || *printed < 1 || devices > kLargestHost) return;
  set_at(cluster, "node.devices", *printed);
  if (const auto nics = count_at(cluster, "network.nics_per_node"))
    set_at(cluster, "network.nics_per_node", std::clamp<std::int64_t>(*nics * *printed / devices, 1, *printed));
}

/// Sets the memory that the text names for a device ("RTX 4090 48GB") where it differs from the preset's.
void take_printed_memory(json& cluster, const std::string& hardware) {
  const auto printed = memory_gb_in(hardware);
  if (!printed) return;
  const json& preset = value_at(cluster, "device.memory_gib");
  const json& known = preset.is_object() ? value_at(preset, "value") : preset;
  constexpr double kGibibyteInGb = 1.073741824, kAlike = 0.12;
  if (!known.is_number() || std::abs(*printed / known.get<double>() - 1) <= kAlike) return;
  set_at(cluster, "device.memory_gib", *printed / kGibibyteInGb);
}

/// Sets the NICs that the text names; the efficiency and latency stay the preset's.
void take_printed_network(json& cluster, const std::string& hardware) {
  const int per_node = devices_in_node(cluster);
  const auto network = network_in(hardware, per_node);
  if (!network || value_at(cluster, "network").is_null()) return;
  const int known = count_at(cluster, "network.nics_per_node").value_or(per_node);
  const int nics = std::min(network->nics > 0 ? network->nics : known, per_node);
  set_at(cluster, "network.bandwidth_gb_per_s", network->node_bytes_per_second / (kGiga * nics));
  set_at(cluster, "network.nics_per_node", nics);
}

/// Returns the rule of the row's own mapping, or the general mapping's where that has none for such hardware; null:
/// there is no mapping.
const ClusterRule* cluster_rule_of(RowReader& reader, const std::string& hardware) {
  if (!reader.mapping) return nullptr;
  if (const ClusterRule* rule = cluster_rule_for(*reader.mapping, hardware)) return rule;
  for (const SourceMapping& general : reader.library.mappings) {
    if (!general.cites.empty()) continue;
    const ClusterRule* rule = cluster_rule_for(general, hardware);
    if (!rule) continue;
    reader.assumptions.push_back(
        fmt::format("the mapping names no cluster for \"{}\": by the general rules {}", hardware, rule->cluster));
    return rule;
  }
  throw Unmapped{
      fmt::format("no cluster for the hardware \"{}\": name a preset in a mapping of your own (--mapping)", hardware)};
}

}  // namespace

ClusterSpec cluster_of(RowReader& reader) {
  const std::string hardware = reader.text("hardware");
  if (hardware.empty()) throw Unmapped{"the row does not name its hardware"};
  const ClusterRule* rule = cluster_rule_of(reader, hardware);
  std::string preset = rule ? rule->cluster : "";
  if (!rule) {
    preset = device_preset_in(hardware);
    if (preset.empty()) throw Unmapped{fmt::format("unknown hardware \"{}\"", hardware)};
    reader.assumptions.push_back(fmt::format("the cluster is the preset {}", preset));
  }
  json cluster = preset_of(reader.library.clusters, preset, "cluster");
  if (rule) {
    for (const auto& [path, value] : rule->set) set_at(cluster, path, value);
  }
  take_printed_node(cluster, reader);
  take_printed_memory(cluster, hardware);
  if (rule && rule->network_as_printed) take_printed_network(cluster, hardware);
  cluster.erase("devices");
  const auto gpus = reader.count("gpus");
  if (!gpus) throw Unmapped{"the number of GPUs is not printed"};
  ClusterSpec spec = cluster_from_json(overridden(reader.library, std::move(cluster), "cluster"), "cluster " + preset);
  if (rule) {
    if (const auto table = reader.library.samples.find(rule->table); table != reader.library.samples.end()) {
      spec.samples = table->second;
    }
  }
  try {
    return resize(std::move(spec), static_cast<int>(*gpus));
  } catch (const SpecError& error) {
    throw Unmapped{error.what()};
  }
}

}}  // namespace plumb::planner
