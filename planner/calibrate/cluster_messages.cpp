#include "planner/calibrate/cluster_messages.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace plumb { inline namespace planner {
namespace {

constexpr std::size_t kFewestSizes = 8;

bool times_message(const KernelSample& sample) {
  return sample.kernel == "message";
}

}  // namespace

ClusterSpec with_messages(ClusterSpec cluster, const std::vector<KernelSample>& samples, const MessageFit& fit,
                          const std::string& source) {
  const bool between_nodes = node_count(cluster) > 1;
  const std::string name = between_nodes ? "network" : "node";
  const LinkSpec link{.bytes_per_second = fit.link.bytes_per_second,
                      .latency = hop_latency(fit.link, std::numeric_limits<std::int64_t>::max())};
  (between_nodes ? cluster.network : cluster.node_link) = link;
  cluster.sources.erase(name + ".efficiency");
  cluster.sources[name + ".bandwidth_gb_per_s"] = source;
  cluster.sources[name + ".latency_us"] = source + ", of a message beyond the eager limit";
  std::erase_if(cluster.samples, times_message);
  std::ranges::copy(samples, std::back_inserter(cluster.samples));
  return cluster;
}

std::optional<MessageLink> messages_of(const ClusterSpec& cluster) {
  if (node_count(cluster) > 1 && cluster.devices_per_node > 1) return {};
  std::vector<KernelSample> samples;
  std::ranges::copy_if(cluster.samples, std::back_inserter(samples), times_message);
  if (samples.size() < kFewestSizes) return {};
  return fit_messages(samples).link;
}

}}  // namespace plumb::planner
