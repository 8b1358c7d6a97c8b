#pragma once
// A measured network as a file: what `plumb calibrate --only transport` writes and `--link` reads.

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planner/calibrate/fit_messages.h"
#include "planner/spec/cluster_spec.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace tools {

/// {"latency_us", "rendezvous_us", "eager_kib", "bandwidth_gb_per_s", "burst_kib"}
nlohmann::ordered_json to_json(const MessageLink& link);

/// The "link" of such a file. Throws InputError naming the file and the key if one is missing, or not a number of 0 or
/// more.
MessageLink read_link(const std::string& path);

/// The link that hops of a plan are predicted over besides the prices of its cluster: of the file `path`, or, where
/// that is empty, what the cluster's own messages say (planner/calibrate/cluster_messages.h).
std::optional<MessageLink> hop_link(const std::string& path, const ClusterSpec& cluster);

/// The table with every hop over that link: bandwidth, and the latency of the largest message that goes its way. The
/// burst is the caller's.
CostTable over_link(CostTable costs, const Schedule& schedule, const MessageLink& link);

}}  // namespace plumb::tools
