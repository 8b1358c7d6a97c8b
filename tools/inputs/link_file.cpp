#include "tools/inputs/link_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/calibrate/cluster_messages.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/strict_json.h"
#include "schedules/units.h"
#include "tools/inputs/file_kinds.h"
#include "tools/io/files.h"

namespace plumb { inline namespace tools {
namespace {

MessageLink parse_link(const std::string& path) {
  const nlohmann::json file = without_format(FileForm::kLink, parse_json(read_text_file(path), path), path);
  if (!file.is_object() || !file.contains("link") || !file["link"].is_object())
    throw InputError(
        fmt::format("{}: this is no measured link: make one by `plumb calibrate --only transport -o {}`", path, path));
  const auto number = [&](const char* key) {
    const nlohmann::json& link = file["link"];
    constexpr double kMost = 1e12;
    if (!link.contains(key) || !link[key].is_number() || !(link[key] >= 0) || !(link[key] <= kMost))
      throw InputError(fmt::format("{}: link.{} is not a number from 0 to {}: give one", path, key, kMost));
    return link[key].get<double>();
  };
  const MessageLink link{.latency = Seconds{number("latency_us") * kMicro},
                         .rendezvous = Seconds{number("rendezvous_us") * kMicro},
                         .eager_bytes = std::llround(number("eager_kib") * kKibibyte),
                         .bytes_per_second = number("bandwidth_gb_per_s") * kGiga,
                         .burst_bytes = std::llround(number("burst_kib") * kKibibyte)};
  if (link.bytes_per_second == 0) throw InputError(fmt::format("{}: link.bandwidth_gb_per_s is 0: give more", path));
  return link;
}

}  // namespace

MessageLink read_link(const std::string& path) {
  return read_as(FileKind::kLink, path, [&] { return parse_link(path); });
}

nlohmann::ordered_json to_json(const MessageLink& link) {
  return {{"latency_us", link.latency.count() / kMicro},
          {"rendezvous_us", link.rendezvous.count() / kMicro},
          {"eager_kib", static_cast<double>(link.eager_bytes) / kKibibyte},
          {"bandwidth_gb_per_s", link.bytes_per_second / kGiga},
          {"burst_kib", static_cast<double>(link.burst_bytes) / kKibibyte}};
}

std::optional<MessageLink> hop_link(const std::string& path, const ClusterSpec& cluster) {
  return path.empty() ? messages_of(cluster) : read_link(path);
}

CostTable over_link(CostTable costs, const Schedule& schedule, const MessageLink& link) {
  costs.links.clear();
  costs.default_link = {.latency = link.latency, .bytes_per_second = link.bytes_per_second};
  const StageNeighbors neighbors = stage_neighbors(schedule);
  const auto carry = [&](int from, int to, std::int64_t bytes) {
    const std::pair<int, int> ranks{schedule.stages[static_cast<std::size_t>(from)].rank,
                                    schedule.stages[static_cast<std::size_t>(to)].rank};
    LinkCost& cost = costs.links.try_emplace(ranks, costs.default_link).first->second;
    cost.latency = std::max(cost.latency, hop_latency(link, bytes));
  };
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    const int own = static_cast<int>(stage);
    const StageCosts& messages = costs.stages[stage];
    if (neighbors.successor[stage] >= 0) carry(own, neighbors.successor[stage], messages.activation_message_bytes);
    if (neighbors.predecessor[stage] >= 0) carry(own, neighbors.predecessor[stage], messages.gradient_message_bytes);
  }
  return costs;
}

}}  // namespace plumb::tools
