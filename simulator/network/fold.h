#pragma once
// Replicas that are alike, simulated once.
//
// Let all replicas run the same schedule at the same speed. Their messages of one stage, and their collectives of one
// stage, form a class; links of the same capacity on which each class takes the same total form a class as well. If the
// flows of every class cross the same kinds of links in the same shares, the partition is equitable: flows of a class
// then have equal rates in the max-min allocation at every moment, and one flow for each class over one link for each
// class of links, loaded with the class's total, has the same times. Nothing is approximated.
// Source: equitable partitions (Godsil & Royle 2001, Algebraic Graph Theory, section 9.3), applied to max-min sharing.

#include <optional>

#include "simulator/network/network_spec.h"

namespace plumb {

/// The network of one replica that stands for all, or nothing if they are not alike. A network of one replica is
/// returned as it is. `network` has passed check_network.
std::optional<NetworkSpec> folded(const NetworkSpec& network, int stages);

}  // namespace plumb
