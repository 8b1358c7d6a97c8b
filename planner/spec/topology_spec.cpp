#include "planner/spec/topology_spec.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/strict_json.h"
#include "schedules/nearest_name.h"

namespace plumb { inline namespace planner {
namespace {

std::vector<std::string> names(StrictObject& object, std::string_view key) {
  const nlohmann::json& list = object.raw(key);
  const bool are_texts = list.is_array() && !list.empty() &&
                         std::ranges::all_of(list, [](const nlohmann::json& name) { return name.is_string(); });
  if (!are_texts) object.fail(key, "an array of one or more names is wanted");
  return list.get<std::vector<std::string>>();
}

int vertex(const Topology& topology, const StrictObject& object, std::string_view key, const std::string& name) {
  const auto found = std::ranges::find(topology.vertices, name);
  if (found == topology.vertices.end()) {
    object.fail(key, fmt::format("there is no node \"{}\": {}", name, did_you_mean(name, topology.vertices)));
  }
  return static_cast<int>(found - topology.vertices.begin());
}

void read_links(Topology& topology, StrictObject& link) {
  const std::string from = link.text("from");
  const std::string to = link.text("to");
  const int near = vertex(topology, link, "from", from);
  const int far = vertex(topology, link, "to", to);
  if (near == far) link.fail("to", fmt::format("the link leads from {} to itself: name another node", from));
  const double bytes_per_second = link.positive_number("bandwidth_gb_per_s") * 1e9;
  const Seconds latency{link.has("latency_us") ? link.non_negative_number("latency_us") * 1e-6 : 0.0};
  const bool both_ways = link.boolean_or("both_ways", true);
  link.finish();
  topology.links.push_back({from + "->" + to, near, far, bytes_per_second, latency});
  if (both_ways) topology.links.push_back({to + "->" + from, far, near, bytes_per_second, latency});
}

}  // namespace

Topology topology_from_json(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  Topology topology{.vertices = names(object, "nodes")};
  for (std::size_t i = 0; i < topology.vertices.size(); ++i) {
    if (std::find(topology.vertices.begin(), topology.vertices.begin() + static_cast<std::ptrdiff_t>(i),
                  topology.vertices[i]) != topology.vertices.begin() + static_cast<std::ptrdiff_t>(i)) {
      object.fail("nodes", fmt::format("\"{}\" is named twice: give each node its own name", topology.vertices[i]));
    }
  }
  for (const std::string& name : names(object, "devices"))
    topology.devices.push_back(vertex(topology, object, "devices", name));
  for (StrictObject& link : object.objects("links")) read_links(topology, link);
  object.finish();
  try {
    check_topology(topology);
  } catch (const SpecError& error) {
    throw SpecError(fmt::format("{}: {}", place, error.what()));
  }
  return topology;
}

Topology parse_topology(std::string_view text, const std::string& file) {
  return topology_from_json(parse_file(FileForm::kTopology, text, file), file);
}

}}  // namespace plumb::planner
