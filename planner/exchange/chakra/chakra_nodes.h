#pragma once
// A step of one device as the nodes of a Chakra execution trace: what computes and for how long, what is sent, and what
// waits for what. ASTRA-sim replays them on a network of its own.
//
//   const ChakraGroups groups = chakra_groups(evaluation.layout);
//   for (int device = 0; device < devices; ++device) chakra_nodes(evaluation, groups, device);
//
// Computing is a node of the predicted length. A collective is a node of its group, a message a pair of nodes with one
// tag; their lengths are the reader's. The order within a rank is that of the schedule's dependencies
// (schedules/dependencies). A bucket of gradients that is complete inside a backward waits for the backward's end.

#include <cstdint>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "schedules/collective_kind.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct ChakraNode {
  enum class Kind : std::uint8_t { kCompute, kCollective, kSend, kReceive };
  Kind kind = Kind::kCompute;
  std::uint64_t id = 0;
  std::string name;                  ///< the action, as 0F3
  std::vector<std::uint64_t> after;  ///< ids of nodes of the same device
  Seconds predicted{0};              ///< how long it lasts with nothing beside it; of messages 0
  CollectiveKind collective = CollectiveKind::kAllReduce;
  std::int64_t bytes = 0;  ///< of collectives the whole buffer of one rank
  int group = 0;           ///< of collectives: number in ChakraGroups
  int source = 0;          ///< of messages: devices
  int destination = 0;
  int tag = 0;  ///< the same at both ends of a message, and of no other between the two
};

/// [number] the devices of a group, ascending.
using ChakraGroups = std::vector<std::vector<int>>;

/// Returns every group of the layout's devices in which some collective may run, each once.
ChakraGroups chakra_groups(const Layout& layout);

/// Returns the nodes of a device; `groups` are the layout's. The ids count from 0.
std::vector<ChakraNode> chakra_nodes(const Evaluation& evaluation, const ChakraGroups& groups, int device);

}}  // namespace plumb::planner
