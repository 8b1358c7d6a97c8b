#pragma once
// The link that single messages between two devices have shown, as a part of a cluster. Its samples stand in the
// cluster's file with their spread, and its constants are those of the node's or the network's link.
//
//   ClusterSpec cluster = with_messages(base, samples, fit_messages(samples), "measured on 2026-11-22 ...");
//   std::optional<MessageLink> link = messages_of(cluster);   // later, from the file

#include <optional>
#include <string>
#include <vector>

#include "planner/calibrate/fit_messages.h"
#include "planner/spec/cluster_spec.h"

namespace plumb { inline namespace planner {

/// Returns the cluster with these "message" samples in the place of its own, and with their link: the network's where
/// it has several nodes, otherwise the link between the devices of its node. The link's latency is that of a message
/// beyond the eager limit, since pipelines send such messages, and its efficiency is 1; `source` is the source of both.
/// A burst is in the samples only.
ClusterSpec with_messages(ClusterSpec cluster, const std::vector<KernelSample>& samples, const MessageFit& fit,
                          const std::string& source);

/// Returns the link of every hop of a pipeline, fitted anew to the cluster's "message" samples. Returns nothing where
/// there are fewer than 8 sizes (there are five constants), or where hops are of two kinds: inside nodes of several
/// devices and between them. Throws like fit_messages.
std::optional<MessageLink> messages_of(const ClusterSpec& cluster);

}}  // namespace plumb::planner
