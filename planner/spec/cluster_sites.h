#pragma once
// Devices of several kinds, or in several places, as one cluster: H100 beside A100, or two sites with a slow link between
// them.
//
//   ClusterSpec both = joined_sites({resize(h100, 16), resize(a100, 8)}, between);   // "h100:16+a100:8"
//   site_of_rank(both, layout, 2)
//
// Pipeline ranks lie on the sites in their order, each on one. What a rank's groups exchange stays inside its site, and
// only messages between pipeline ranks go from site to site.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/operating_spec.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace planner {

/// Returns a cluster of all these sites' devices. Without `between` what goes between two sites takes the slower of
/// their networks, as if they shared one. Throws SpecError as require_sites does.
ClusterSpec joined_sites(std::vector<ClusterSpec> sites, const std::optional<LinkSpec>& between);

/// Throws SpecError naming `place` if a site has sites itself, if one has no network and there is no link between them,
/// or if the devices before a site do not fill nodes of its size.
void require_sites(const ClusterSpec& cluster, std::string_view place);

int site_count(const ClusterSpec& cluster);

/// Returns "16 x NVIDIA H100 SXM + 8 x NVIDIA A100".
std::string devices_text(const ClusterSpec& cluster);

/// Returns the site alone, with its own devices.
ClusterSpec site_alone(const ClusterSpec& cluster, int site);

/// Returns the cluster as it would be if all its devices stood on that site and were of its kind.
ClusterSpec all_on_site(const ClusterSpec& cluster, int site);

/// Returns the site that holds a pipeline rank of the layout, whose degrees take all devices.
int site_of_rank(const ClusterSpec& cluster, const Layout& layout, int rank);

/// Returns the devices of the smallest node of all sites.
int smallest_node(const ClusterSpec& cluster);

/// Returns the device of a pipeline rank.
const DeviceSpec& device_of_rank(const ClusterSpec& cluster, const Layout& layout, int rank);

/// Returns the device of the site with most memory.
const DeviceSpec& largest_device(const ClusterSpec& cluster);

/// Returns the reason why the layout cannot lie on the sites, with the remedy; nothing if it can.
std::optional<std::string> site_conflict(const ClusterSpec& cluster, const Layout& layout);

/// Returns what one device of a pipeline rank has of the way to another site, if all `senders` of its rank send at once.
LinkCost site_link(const ClusterSpec& cluster, int from, int to, int senders);

/// Returns the sum of the devices' peaks. Each must have one in that precision.
double peak_flops_per_second(const ClusterSpec& cluster, Precision precision);

/// Returns money and power of the mean device; nothing for what a site does not know.
OperatingSpec mean_operation(const ClusterSpec& cluster);

}}  // namespace plumb::planner
