#pragma once
// The cluster of a published row: a preset by the hardware's text, with what the row prints of nodes, memory and network.

#include "planner/score/row_reader.h"
#include "planner/spec/cluster_spec.h"

namespace plumb { inline namespace planner {

/// Returns the row's cluster. Throws Unmapped if the row does not tell it, and SpecError if the library is at fault.
ClusterSpec cluster_of(RowReader& reader);

}}  // namespace plumb::planner
