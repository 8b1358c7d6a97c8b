#pragma once
// The file of a measured network, which `plumb calibrate --only transport` writes and `--link` reads.

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planner/calibrate/fit_messages.h"
#include "planner/spec/cluster_spec.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace tools {

/// Returns {"latency_us", "rendezvous_us", "eager_kib", "bandwidth_gb_per_s", "burst_kib"}.
nlohmann::ordered_json to_json(const MessageLink& link);

/// Returns the "link" of such a file. Throws InputError with the file and the key if a key is missing or is no number
/// from 0 to 1e12, or the bandwidth is 0.
MessageLink read_link(const std::string& path);

/// Returns the link that replaces the cluster's prices for the hops of a plan: the link of the file `path`, or, where
/// that is empty, the one of the cluster's own measured messages, if it has any (planner/calibrate/cluster_messages.h).
std::optional<MessageLink> hop_link(const std::string& path, const ClusterSpec& cluster);

/// Returns the table with every hop over that link: its bandwidth, and the latency of the largest message between the
/// two ranks. The caller applies the burst.
CostTable over_link(CostTable costs, const Schedule& schedule, const MessageLink& link);

}}  // namespace plumb::tools
