#pragma once
// Which links can ever be full: what of a network the event engine has to look at.

#include "simulator/network/topology/network_spec.h"

namespace plumb { inline namespace simulator {

/// The same network with only the links that can hold a flow back: those for which all channels together can ask more
/// than the capacity. A channel carries one transfer at a time, and so do all actions of one rank together: of the
/// collectives inside them that one replica takes part in only the fastest counts. Where none is left no two transfers
/// of the schedule can slow each other down, and every one of them takes its own time. `network` has passed
/// check_network. Throws SpecError if a message with a route has an unlimited rate.
NetworkSpec with_limiting_links(const NetworkSpec& network, const Schedule& lowered, const CostTable& costs);

/// [link] whether it can hold a flow back, and the network with those links alone.
std::vector<bool> limiting_links(const NetworkSpec& network, const Schedule& lowered, const CostTable& costs);
NetworkSpec with_links(const NetworkSpec& network, const std::vector<bool>& kept);

}}  // namespace plumb::simulator
