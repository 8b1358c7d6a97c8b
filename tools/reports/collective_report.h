#pragma once
// The score of NCCL's model against published collectives, as text.

#include <string>

#include "planner/score/collective_rows.h"

namespace plumb { inline namespace tools {

/// Returns a table of the clusters, for a terminal.
std::string collective_text(const CollectiveScore& score);

/// Returns a section of Markdown with the same table and the sweeps of each half.
std::string collective_page(const CollectiveScore& score);

}}  // namespace plumb::tools
