#pragma once
// Published collectives held against NCCL's model, for a person to read.

#include <string>

#include "planner/score/collective_rows.h"

namespace plumb { inline namespace tools {

/// A table of the clusters, for a terminal.
std::string collective_text(const CollectiveScore& score);

/// A section of Markdown: the same table, how rows were divided, the constants of both halves.
std::string collective_page(const CollectiveScore& score);

}}  // namespace plumb::tools
