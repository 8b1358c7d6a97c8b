#pragma once
// Nodes as the bytes of a Chakra file: the header and then each node, each behind its length (protobuf's delimited form).

#include <string>
#include <vector>

#include "planner/exchange/chakra/chakra_nodes.h"

namespace plumb { inline namespace planner {

/// Durations are whole microseconds, as the schema has them: each node begins where the exact sum of those before it is
/// rounded to, so that a rank's sum is off by half a microsecond at most.
std::string chakra_file(const std::vector<ChakraNode>& nodes);

/// Returns ASTRA-sim's file of groups: {"0": [0, 1], "1": [0, 2], ...}.
std::string chakra_groups_file(const ChakraGroups& groups);

}}  // namespace plumb::planner
