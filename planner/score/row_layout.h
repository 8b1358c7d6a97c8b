#pragma once
// The layout of a published row: degrees, micro-batch, recomputation, schedule and split.

#include "planner/score/row_reader.h"
#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

/// Returns the row's layout. Throws Unmapped if the row does not tell it, or contradicts itself.
Layout layout_of_row(RowReader& reader);

}}  // namespace plumb::planner
