#pragma once
// Finds the links that can ever be full: the event engine has to look at no others.

#include "simulator/network/topology/network_spec.h"

namespace plumb { inline namespace simulator {

/// Returns the network with only the links that can hold a flow back: those for which all channels together can ask
/// more than the capacity. A channel carries one transfer at a time. All actions of one rank together also carry one at
/// a time: of the collectives inside them that one replica takes part in, only the fastest counts. Where no link is
/// left, no two transfers of the schedule can slow each other down, and every one of them takes its own time. `network`
/// must have passed check_network. Throws SpecError if a message with a route has an unlimited rate.
NetworkSpec with_limiting_links(const NetworkSpec& network, const Schedule& lowered, const CostTable& costs);

/// Return [link] true if it can hold a flow back, and the network with the `kept` links alone.
std::vector<bool> limiting_links(const NetworkSpec& network, const Schedule& lowered, const CostTable& costs);
NetworkSpec with_links(const NetworkSpec& network, const std::vector<bool>& kept);

}}  // namespace plumb::simulator
