#include "planner/spec/cluster_spec.h"

#include <algorithm>
#include <charconv>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "kernels/layer.h"
#include "planner/spec/cluster_sites.h"
#include "planner/spec/fifteen_digits.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/strict_json.h"
#include "schedules/limits.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

constexpr NodeHub kHubs[] = {NodeHub::kNvSwitch, NodeHub::kPcie, NodeHub::kMesh};

constexpr Precision kPrecisions[] = {Precision::kFp32, Precision::kTf32, Precision::kBf16,
                                     Precision::kFp16, Precision::kFp8,  Precision::kNvfp4};

std::int64_t bytes_of_gib(StrictObject& object, std::string_view key, double gib) {
  constexpr double kLargestGib = 1e9;
  if (gib > kLargestGib) object.fail(key, fmt::format("{} is out of range: give at most {}", gib, kLargestGib));
  return static_cast<std::int64_t>(gib * kGibibyte + 0.5);
}

/// Adds the source of every {"value", "source"} below `json`, by dotted path.
void collect_sources(const nlohmann::json& json, const std::string& path, std::map<std::string, std::string>& sources) {
  if (!json.is_object()) return;
  if (json.contains("value") && json.contains("source") && json.at("source").is_string()) {
    sources[path] = json.at("source").get<std::string>();
    return;
  }
  for (const auto& [key, value] : json.items()) collect_sources(value, path.empty() ? key : path + "." + key, sources);
}

int count_or(StrictObject& object, std::string_view key, int fallback) {
  constexpr std::int64_t kLargestCount = 1 << 24;
  const std::int64_t count = object.positive_integer_or(key, fallback);
  if (count > kLargestCount) object.fail(key, fmt::format("{} is out of range: give at most {}", count, kLargestCount));
  return static_cast<int>(count);
}

std::map<std::string, AttentionRate> read_attention(StrictObject object) {
  std::map<std::string, AttentionRate> rates;
  for (int kernel = 0; kernel < kAttentionKernelCount; ++kernel) {
    const std::string name(attention_kernel_name(static_cast<AttentionKernel>(kernel)));
    if (!object.has(name)) continue;
    StrictObject rate = object.object(name);
    rates[name] = {.forward = rate.fraction("forward"), .backward = rate.fraction("backward")};
    if (rate.has("half_sequence")) rates[name].half_sequence = rate.non_negative_number("half_sequence");
    rates[name].backward_half_sequence = rate.has("backward_half_sequence")
                                             ? rate.non_negative_number("backward_half_sequence")
                                             : rates[name].half_sequence;
    rate.finish();
  }
  object.finish();
  return rates;
}

DeviceSpec read_device(StrictObject object) {
  DeviceSpec device;
  device.name = object.text("name");
  StrictObject peaks = object.object("peak_tflops");
  for (const Precision precision : kPrecisions) {
    const std::string_view name = precision_name(precision);
    if (peaks.has(name)) device.peak_flops_per_second[precision] = peaks.positive_number(name) * kTera;
  }
  peaks.finish();
  if (device.peak_flops_per_second.empty()) {
    object.fail("peak_tflops", "no precision is given: add the peak of at least one of fp32, tf32, bf16, fp16, fp8");
  }
  device.memory_bytes = bytes_of_gib(object, "memory_gib", object.positive_number("memory_gib"));
  if (object.has("reserved_gib")) {
    device.reserved_bytes = bytes_of_gib(object, "reserved_gib", object.non_negative_number("reserved_gib"));
  }
  if (device.reserved_bytes >= device.memory_bytes) {
    object.fail("reserved_gib", "nothing of memory_gib is left: give what the runtime really takes");
  }
  device.memory_bytes_per_second = object.positive_number("memory_bandwidth_gb_per_s") * kGiga;
  device.gemm_efficiency = object.fraction("gemm_efficiency");
  for (const Precision precision : {Precision::kFp8, Precision::kNvfp4}) {
    const std::string key = fmt::format("{}_gemm_efficiency", precision_name(precision));
    if (object.has(key)) device.quantized_gemm_efficiency[precision] = object.fraction(key);
  }
  device.attention_efficiency = object.fraction("attention_efficiency");
  if (object.has("attention")) device.attention = read_attention(object.object("attention"));
  device.memory_efficiency = object.fraction("memory_efficiency");
  if (object.has("kernel_fixed_us"))
    device.kernel_fixed = Seconds{object.non_negative_number("kernel_fixed_us") * kMicro};
  device.gemm_fixed = device.kernel_fixed;
  if (object.has("gemm_fixed_us")) device.gemm_fixed = Seconds{object.non_negative_number("gemm_fixed_us") * kMicro};
  if (object.has("wave_fixed_us")) device.wave_fixed = Seconds{object.non_negative_number("wave_fixed_us") * kMicro};
  if (object.has("misaligned_rows")) device.misaligned_rows = object.positive_number("misaligned_rows");
  if (object.has("misaligned_by_4")) device.misaligned_by_4 = object.positive_number("misaligned_by_4");
  if (object.has("misaligned_by_2")) device.misaligned_by_2 = object.positive_number("misaligned_by_2");
  device.compute_units = count_or(object, "compute_units", 1);
  device.gemm_tile = count_or(object, "gemm_tile", 1);
  if (object.has("collective_slowdown")) device.collective_slowdown = object.non_negative_number("collective_slowdown");
  object.finish();
  return device;
}

LinkSpec read_link(StrictObject& object) {
  LinkSpec link;
  link.bytes_per_second = object.positive_number("bandwidth_gb_per_s") * kGiga;
  if (object.has("efficiency")) link.efficiency = object.fraction("efficiency");
  if (object.has("latency_us")) link.latency = Seconds{object.non_negative_number("latency_us") * kMicro};
  return link;
}

/// Returns the index of the word that the key has; 0 where the key is not there.
std::size_t one_of(StrictObject& object, std::string_view key, const std::vector<std::string>& words) {
  const std::string word = object.text_or(key, words.front());
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) {
    object.fail(key, fmt::format("\"{}\" is unknown: give {}", word, fmt::join(words, " or ")));
  }
  return static_cast<std::size_t>(found - words.begin());
}

KernelSample read_sample(StrictObject object) {
  KernelSample sample{.kernel = object.text("kernel"), .shape = object.integers("shape")};
  sample.median = Seconds{object.positive_number("median_s")};
  sample.fastest = object.has("fastest_s") ? Seconds{object.positive_number("fastest_s")} : sample.median;
  sample.slowest = object.has("slowest_s") ? Seconds{object.positive_number("slowest_s")} : sample.median;
  sample.repeats = count_or(object, "repeats", 1);
  sample.busy_ranks = count_or(object, "busy_ranks", 1);
  if (object.has("host_s")) sample.host = Seconds{object.non_negative_number("host_s")};
  object.finish();
  check_kernel_sample(sample, object.place());
  return sample;
}

/// Returns a number of the JSON form, with its source where there is one.
nlohmann::ordered_json number(const ClusterSpec& cluster, const std::string& path, double exact) {
  const double value = fifteen_digits(exact);
  const auto source = cluster.sources.find(path);
  if (source == cluster.sources.end()) return value;
  return {{"value", value}, {"source", source->second}};
}

nlohmann::ordered_json integer(const ClusterSpec& cluster, const std::string& path, std::int64_t value) {
  const auto source = cluster.sources.find(path);
  if (source == cluster.sources.end()) return value;
  return {{"value", value}, {"source", source->second}};
}

void write_link(nlohmann::ordered_json& json, const ClusterSpec& cluster, const std::string& path,
                const LinkSpec& link) {
  json["bandwidth_gb_per_s"] = number(cluster, path + ".bandwidth_gb_per_s", link.bytes_per_second / kGiga);
  json["efficiency"] = number(cluster, path + ".efficiency", link.efficiency);
  json["latency_us"] = number(cluster, path + ".latency_us", link.latency.count() / kMicro);
}

nlohmann::ordered_json device_json(const ClusterSpec& cluster) {
  const DeviceSpec& device = cluster.device;
  nlohmann::ordered_json json{{"name", device.name}};
  for (const auto& [precision, flops] : device.peak_flops_per_second) {
    const std::string name(precision_name(precision));
    json["peak_tflops"][name] = number(cluster, "device.peak_tflops." + name, flops / kTera);
  }
  const auto put = [&](const std::string& key, double value) { json[key] = number(cluster, "device." + key, value); };
  put("memory_gib", static_cast<double>(device.memory_bytes) / kGibibyte);
  put("reserved_gib", static_cast<double>(device.reserved_bytes) / kGibibyte);
  put("memory_bandwidth_gb_per_s", device.memory_bytes_per_second / kGiga);
  put("gemm_efficiency", device.gemm_efficiency);
  for (const auto& [precision, efficiency] : device.quantized_gemm_efficiency)
    put(fmt::format("{}_gemm_efficiency", precision_name(precision)), efficiency);
  put("attention_efficiency", device.attention_efficiency);
  for (const auto& entry : device.attention) {
    const auto figure = [&](const std::string& key, double value) {
      const std::string path = fmt::format("device.attention.{}.{}", entry.first, key);
      json["attention"][entry.first][key] = number(cluster, path, value);
    };
    figure("forward", entry.second.forward);
    figure("backward", entry.second.backward);
    figure("half_sequence", entry.second.half_sequence);
    figure("backward_half_sequence", entry.second.backward_half_sequence);
  }
  put("memory_efficiency", device.memory_efficiency);
  put("kernel_fixed_us", device.kernel_fixed.count() / kMicro);
  put("gemm_fixed_us", device.gemm_fixed.count() / kMicro);
  put("wave_fixed_us", device.wave_fixed.count() / kMicro);
  if (device.misaligned_rows != 1) put("misaligned_rows", device.misaligned_rows);
  if (device.misaligned_by_4 != 1) put("misaligned_by_4", device.misaligned_by_4);
  if (device.misaligned_by_2 != 1) put("misaligned_by_2", device.misaligned_by_2);
  json["compute_units"] = integer(cluster, "device.compute_units", device.compute_units);
  json["gemm_tile"] = integer(cluster, "device.gemm_tile", device.gemm_tile);
  if (device.collective_slowdown > 0) put("collective_slowdown", device.collective_slowdown);
  return json;
}

nlohmann::ordered_json channels_json(const ClusterSpec& cluster, const std::string& path,
                                     const NcclChannels& channels) {
  return {{"channels", integer(cluster, path + ".channels", channels.count)},
          {"inside_gb_per_s", number(cluster, path + ".inside_gb_per_s", channels.inside_bytes_per_second / kGiga)},
          {"between_gb_per_s", number(cluster, path + ".between_gb_per_s", channels.between_bytes_per_second / kGiga)}};
}

nlohmann::ordered_json nccl_json(const ClusterSpec& cluster) {
  const NcclSpec& nccl = *cluster.nccl;
  constexpr std::string_view kCpus[] = {"intel", "amd", "other"};
  nlohmann::ordered_json json{{"generation", generation_name(nccl.generation)},
                              {"host_cpu", kCpus[static_cast<std::size_t>(nccl.host_cpu)]},
                              {"nvlink", nccl.nvlink}};
  const auto put = [&](const std::string& key, double value) { json[key] = number(cluster, "nccl." + key, value); };

  json["nvlink_sharp"] = nccl.nvlink_sharp;
  json["network_sharp"] = nccl.network_sharp;
  put("nic_latency_us", nccl.nic_latency.count() / kMicro);
  if (nccl.host_crossing_bytes_per_second > 0)
    put("host_crossing_gb_per_s", nccl.host_crossing_bytes_per_second / kGiga);
  json["tree_pattern"] = nccl.balanced_tree ? "balanced" : "plain";
  if (nccl.ring) json["ring"] = channels_json(cluster, "nccl.ring", *nccl.ring);
  if (nccl.tree) json["tree"] = channels_json(cluster, "nccl.tree", *nccl.tree);
  if (nccl.nvls) json["nvls"] = channels_json(cluster, "nccl.nvls", *nccl.nvls);
  put("low_latency_launch_us", nccl.calibration.low_latency_launch.count() / kMicro);
  put("simple_launch_us", nccl.calibration.simple_launch.count() / kMicro);
  put("bandwidth_scale", nccl.calibration.bandwidth_scale);
  return json;
}

nlohmann::ordered_json host_json(const ClusterSpec& cluster) {
  const HostSpec& host = *cluster.host;
  nlohmann::ordered_json json;
  const auto put = [&](const std::string& key, double value) { json[key] = number(cluster, "host." + key, value); };
  put("memory_gib", static_cast<double>(host.memory_bytes) / kGibibyte);
  put("memory_bandwidth_gb_per_s", host.memory_bytes_per_second / kGiga);
  put("memory_efficiency", host.memory_efficiency);
  put("device_bandwidth_gb_per_s", host.device_bytes_per_second / kGiga);
  put("device_efficiency", host.device_efficiency);
  if (host.devices_per_switch != 1) put("devices_per_switch", host.devices_per_switch);
  if (host.nic_shares_device_link) json["nic_shares_device_link"] = true;
  return json;
}

nlohmann::ordered_json operation_json(const ClusterSpec& cluster) {
  const OperatingSpec& operation = cluster.operation;
  nlohmann::ordered_json json;
  const auto put = [&](const std::string& key, std::optional<double> value) {
    if (value) json[key] = number(cluster, "operation." + key, *value);
  };
  put("usd_per_device_hour", operation.usd_per_device_hour);
  put("idle_w", operation.idle_watts);
  put("busy_w", operation.busy_watts);
  if (operation.pue != 1) put("pue", operation.pue);
  return json;
}

}  // namespace

namespace {

/// `json` is the object's own.
ClusterSpec read_cluster(StrictObject object, const nlohmann::json& json) {
  ClusterSpec cluster;
  cluster.name = object.text("name");
  cluster.note = object.text_or("note", "");
  cluster.device = read_device(object.object("device"));
  StrictObject node = object.object("node");
  node.positive_integer("devices");
  cluster.devices_per_node = count_or(node, "devices", 1);
  if (cluster.devices_per_node > 1 || node.has("bandwidth_gb_per_s")) cluster.node_link = read_link(node);
  cluster.wiring.hub = kHubs[one_of(node, "hub", {"nvswitch", "pcie", "mesh"})];
  node.finish();
  if (object.has("network")) {
    StrictObject network = object.object("network");
    cluster.network = read_link(network);
    cluster.wiring.leaves = one_of(network, "leaves", {"rail", "node"}) == 1 ? Leaves::kByNode : Leaves::kByRail;
    cluster.wiring.nodes_per_leaf = count_or(network, "nodes_per_leaf", 0);
    cluster.wiring.nics_per_node = count_or(network, "nics_per_node", 0);
    if (cluster.wiring.nics_per_node > cluster.devices_per_node) {
      network.fail("nics_per_node", fmt::format("{} NICs are more than the {} devices of a node: give at most one each",
                                                cluster.wiring.nics_per_node, cluster.devices_per_node));
    }
    if (network.has("oversubscription")) cluster.wiring.oversubscription = network.positive_number("oversubscription");
    network.finish();
  }
  if (object.has("host")) cluster.host = read_host(object.object("host"));
  if (object.has("operation")) cluster.operation = read_operation(object.object("operation"));
  if (object.has("nccl")) {
    if (cluster.devices_per_node > 1 || cluster.network)
      cluster.nccl = read_nccl(object.object("nccl"));
    else
      object.fail("nccl", "a single device exchanges nothing: leave it out, or say how the devices are linked");
  }
  if (object.has("collective_tables")) {
    for (StrictObject& table : object.objects("collective_tables"))
      cluster.collective_tables.push_back(read_collective_table(table));
  }
  if (object.has("kernel_samples")) {
    for (StrictObject& sample : object.objects("kernel_samples")) cluster.samples.push_back(read_sample(sample));
  }
  int further = 0;
  if (object.has("further_sites")) {
    std::size_t next = 0;
    for (const StrictObject& site : object.objects("further_sites")) {
      cluster.further_sites.push_back(read_cluster(site, json.at("further_sites").at(next++)));
      further += cluster.further_sites.back().devices;
    }
  }
  if (object.has("between_sites")) {
    StrictObject between = object.object("between_sites");
    cluster.between_sites = read_link(between);
    between.finish();
  }
  const int devices = count_or(object, "devices", cluster.devices_per_node + further);
  if (further > 0 && devices <= further)
    object.fail("devices", fmt::format("{} devices leave none beside the {} of further_sites: count those of all sites",
                                       devices, further));
  if (const std::string conflict = devices_conflict(cluster, devices - further); !conflict.empty())
    object.fail("devices", conflict);
  cluster.devices = devices;
  object.finish();
  require_sites(cluster, object.place());
  collect_sources(json, "", cluster.sources);
  return cluster;
}

}  // namespace

ClusterSpec cluster_from_json(const nlohmann::json& json, const std::string& place) {
  return read_cluster(StrictObject(json, place), json);
}

ClusterSpec parse_cluster(std::string_view text, const std::string& file) {
  return cluster_from_json(parse_file(FileForm::kCluster, text, file), file);
}

nlohmann::ordered_json to_json(const ClusterSpec& cluster) {
  nlohmann::ordered_json json{{"name", cluster.name}, {"note", cluster.note}, {"devices", cluster.devices}};
  json["device"] = device_json(cluster);
  json["node"] = {{"devices", integer(cluster, "node.devices", cluster.devices_per_node)}};
  if (cluster.node_link) write_link(json["node"], cluster, "node", *cluster.node_link);
  if (cluster.wiring.hub == NodeHub::kPcie) json["node"]["hub"] = "pcie";
  if (cluster.wiring.hub == NodeHub::kMesh) json["node"]["hub"] = "mesh";
  if (cluster.network) {
    write_link(json["network"], cluster, "network", *cluster.network);
    const WiringSpec& wiring = cluster.wiring;
    if (wiring.leaves == Leaves::kByNode) json["network"]["leaves"] = "node";
    if (wiring.nics_per_node > 0)
      json["network"]["nics_per_node"] = integer(cluster, "network.nics_per_node", wiring.nics_per_node);
    if (wiring.nodes_per_leaf > 0)
      json["network"]["nodes_per_leaf"] = integer(cluster, "network.nodes_per_leaf", wiring.nodes_per_leaf);
    if (wiring.oversubscription != 1)
      json["network"]["oversubscription"] = number(cluster, "network.oversubscription", wiring.oversubscription);
  }
  if (cluster.host) json["host"] = host_json(cluster);
  if (cluster.operation != OperatingSpec{}) json["operation"] = operation_json(cluster);
  if (cluster.nccl) json["nccl"] = nccl_json(cluster);
  for (const CollectiveTable& table : cluster.collective_tables) json["collective_tables"].push_back(to_json(table));
  for (const KernelSample& sample : cluster.samples) {
    json["kernel_samples"].push_back({{"kernel", sample.kernel},
                                      {"shape", sample.shape},
                                      {"median_s", sample.median.count()},
                                      {"fastest_s", sample.fastest.count()},
                                      {"slowest_s", sample.slowest.count()},
                                      {"repeats", sample.repeats},
                                      {"busy_ranks", sample.busy_ranks}});
    if (sample.host > Seconds{0}) json["kernel_samples"].back()["host_s"] = sample.host.count();
  }
  for (const ClusterSpec& site : cluster.further_sites) json["further_sites"].push_back(to_json(site));
  if (cluster.between_sites) write_link(json["between_sites"], cluster, "between_sites", *cluster.between_sites);
  return json;
}

}}  // namespace plumb::planner
