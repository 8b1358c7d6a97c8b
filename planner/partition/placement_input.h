#pragma once
// Inputs of dnn-partitioning (Tarnawski et al. 2020): a DAG of operators with their time on one accelerator, in JSON.
// Training inputs have a node for each backward, which shares the colour of its forward.

#include <string>
#include <string_view>

#include "planner/partition/profiled_graph.h"

namespace plumb { inline namespace planner {

/// Reads an input, with times in ms and sizes in bytes. The nodes of one colour become one node, since they must share a
/// device; edges between backward nodes repeat those between forward nodes and are left out. "size" of an edge is what
/// it carries (0 if left out). Devices other than accelerators are not used. Throws SpecError with the place: a number
/// that is none or negative, an edge to a node that is not there, a cycle, no node at all, too many.
ProfiledGraph parse_placement_input(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
