#pragma once
// Profiles of PipeDream (Narayanan et al. 2019) and DAPPLE (Fan et al. 2021), which share a form:
//
//   node7 -- Conv2d(...) -- forward_compute_time=1.2, backward_compute_time=2.5, activation_size=4096.0, ...
//     node7 -- node8
//
// Times are in ms and sizes in bytes, of a mini-batch.

#include <string>
#include <string_view>

#include "planner/partition/profiled_graph.h"

namespace plumb { inline namespace planner {

/// Reads a profile. Each node keeps its output for the backward, and its weights, gradients and Adam's two moments.
/// Nodes named Input do no work, and nodes named __getitem__ that nothing reads are no layers: both are left out, as
/// PipeDream does. Throws SpecError with the line: no node or edge, a number that is none or negative, an edge to a
/// node that is not there, a cycle, no node at all, too many.
ProfiledGraph parse_pipedream_profile(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
