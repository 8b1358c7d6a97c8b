#include "planner/spec/nccl_spec.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/spec/fifteen_digits.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::string_view kGenerations[] = {"volta", "ampere", "hopper", "blackwell"};
constexpr std::string_view kCollectives[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"};

int bounded_count(StrictObject& object, std::string_view key, std::int64_t most) {
  const std::int64_t count = object.non_negative_integer_or(key, 0);
  if (count > most) object.fail(key, fmt::format("{} is out of range: give at most {}", count, most));
  return static_cast<int>(count);
}

std::optional<NcclChannels> read_channels(StrictObject& parent, std::string_view key) {
  if (!parent.has(key)) return std::nullopt;
  constexpr int kMostChannels = 64;
  StrictObject object = parent.object(key);
  NcclChannels channels;
  channels.count = bounded_count(object, "channels", kMostChannels);
  if (channels.count == 0) object.fail("channels", "there is none: give 1 to 64");
  channels.inside_bytes_per_second = object.positive_number("inside_gb_per_s") * kGiga;
  channels.between_bytes_per_second = object.has("between_gb_per_s")
                                          ? object.positive_number("between_gb_per_s") * kGiga
                                          : channels.inside_bytes_per_second;
  object.finish();
  return channels;
}

NcclCalibration read_calibration(StrictObject& object) {
  constexpr double kLargestScale = 1.25;
  NcclCalibration calibration;
  if (object.has("low_latency_launch_us"))
    calibration.low_latency_launch = Seconds{object.non_negative_number("low_latency_launch_us") * kMicro};
  if (object.has("simple_launch_us"))
    calibration.simple_launch = Seconds{object.non_negative_number("simple_launch_us") * kMicro};
  if (object.has("bandwidth_scale")) {
    calibration.bandwidth_scale = object.positive_number("bandwidth_scale");
    if (calibration.bandwidth_scale > kLargestScale) {
      object.fail("bandwidth_scale",
                  fmt::format("{:.3g} is above {}: the mapping is wrong, correct generation, bandwidths "
                              "or nics instead",
                              calibration.bandwidth_scale, kLargestScale));
    }
  }
  return calibration;
}

}  // namespace

std::string_view generation_name(NcclGeneration generation) {
  return kGenerations[static_cast<std::size_t>(generation)];
}

std::optional<CollectiveKind> collective_from_name(std::string_view name) {
  const auto found = std::ranges::find(kCollectives, name);
  if (found == std::end(kCollectives)) return std::nullopt;
  return static_cast<CollectiveKind>(found - std::begin(kCollectives));
}

NcclSpec read_nccl(StrictObject object) {
  NcclSpec spec;
  if (object.has("nics")) object.fail("nics", "the NICs of a node are network.nics_per_node: say it there");
  const std::string generation = object.choice("generation", {std::begin(kGenerations), std::end(kGenerations)});
  spec.generation = static_cast<NcclGeneration>(std::ranges::find(kGenerations, generation) - std::begin(kGenerations));
  const std::string cpu = object.has("host_cpu") ? object.choice("host_cpu", {"intel", "amd", "other"}) : "other";
  spec.host_cpu = cpu == "intel" ? HostCpu::kIntel : cpu == "amd" ? HostCpu::kAmd : HostCpu::kOther;
  spec.nvlink = object.boolean_or("nvlink", true);
  spec.nvlink_sharp = object.boolean_or("nvlink_sharp", false);
  if (spec.nvlink_sharp && !spec.nvlink) object.fail("nvlink_sharp", "the devices have no NVLink: leave it out");
  spec.network_sharp = object.boolean_or("network_sharp", false);
  if (object.has("nic_latency_us")) spec.nic_latency = Seconds{object.non_negative_number("nic_latency_us") * kMicro};
  if (object.has("host_crossing_gb_per_s"))
    spec.host_crossing_bytes_per_second = object.non_negative_number("host_crossing_gb_per_s") * kGiga;
  spec.balanced_tree =
      !object.has("tree_pattern") || object.choice("tree_pattern", {"balanced", "plain"}) == "balanced";
  spec.ring = read_channels(object, "ring");
  spec.tree = read_channels(object, "tree");
  spec.nvls = read_channels(object, "nvls");
  spec.calibration = read_calibration(object);
  object.finish();
  return spec;
}

CollectiveTable read_collective_table(StrictObject object) {
  CollectiveTable table;
  table.kind = *collective_from_name(object.choice("collective", {std::begin(kCollectives), std::end(kCollectives)}));
  constexpr std::int64_t kMostRanks = 1 << 24;
  const std::int64_t ranks = object.positive_integer("ranks");
  const std::int64_t nodes = object.positive_integer_or("nodes", 1);
  if (ranks < 2 || ranks > kMostRanks) object.fail("ranks", fmt::format("{} is out of range: give 2 or more", ranks));
  if (nodes > ranks) object.fail("nodes", fmt::format("{} nodes do not fit {} ranks: give fewer", nodes, ranks));
  table.ranks = static_cast<int>(ranks);
  table.nodes = static_cast<int>(nodes);
  table.bytes = object.integers("bytes");
  const nlohmann::json& times = object.raw("us");
  if (!times.is_array() || times.size() != table.bytes.size() || table.bytes.empty()) {
    object.fail("us", fmt::format("a list of {} times is needed, one for each size", table.bytes.size()));
  }
  for (const nlohmann::json& time : times) {
    if (!time.is_number() || !(time.get<double>() > 0)) object.fail("us", "each time must be a number above 0");
    table.times.emplace_back(time.get<double>() * kMicro);
  }
  for (std::size_t i = 0; i < table.bytes.size(); ++i) {
    if (table.bytes[i] < 1 || (i > 0 && table.bytes[i] <= table.bytes[i - 1]))
      object.fail("bytes", "the sizes must be above 0 and ascend");
  }
  object.finish();
  return table;
}

nlohmann::ordered_json to_json(const CollectiveTable& table) {
  nlohmann::ordered_json json{{"collective", collective_name(table.kind)},
                              {"ranks", table.ranks},
                              {"nodes", table.nodes},
                              {"bytes", table.bytes}};
  for (const Seconds time : table.times) json["us"].push_back(fifteen_digits(time.count() / kMicro));
  return json;
}

}}  // namespace plumb::planner
