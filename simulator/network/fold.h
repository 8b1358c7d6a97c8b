#pragma once
// Replicas that are alike are simulated once.
//
// Let all replicas run the same schedule. Replicas, their messages and collectives, and links are put into classes:
// replicas by the speeds of their ranks, links by their capacity, and then both by the classes of the flows and links
// that cross each other, until no class splits any more (colour refinement). The partition is then equitable: flows of
// a class have equal rates in the max-min allocation at every moment. One replica for each class, with one flow for
// each class of flows over one link for each class of links, loaded with the class's total, therefore has the same
// times. Nothing is approximated. Source: equitable partitions (Godsil & Royle 2001, Algebraic Graph Theory, section
// 9.3), applied to max-min sharing.

#include <vector>

#include "simulator/network/topology/network_spec.h"

namespace plumb { inline namespace simulator {

struct Fold {
  NetworkSpec network;             ///< a replica for each class, in the order of their first members
  std::vector<int> first_replica;  ///< [class] the first of the replicas that it stands for
};

/// The classes of replicas, links and flows that are alike.
struct AlikeClasses {
  std::vector<int> of_replica;
  std::vector<int> of_link;
  std::vector<int> of_flow;  ///< messages and moves, then collectives, then collectives inside actions
  int replicas = 0;
  int links = 0;
  int flows = 0;
};

/// Returns the classes. Replicas whose `kinds` differ are never alike; empty means one kind. `network` must have passed
/// check_network.
AlikeClasses alike_classes(const NetworkSpec& network, int stages, const std::vector<int>& kinds = {});

/// Returns the folded network. `classes` must be of that network, or of one that differs only in its figures.
Fold folded(const NetworkSpec& network, int stages, const AlikeClasses& classes);
Fold folded(const NetworkSpec& network, int stages);

}}  // namespace plumb::simulator
