#pragma once
// How far a search of layouts is.

#include "planner/search/search.h"

namespace plumb { inline namespace tools {

/// Puts the best layout so far into the line of tools/io/progress.h. Its bar fills as the least value that a layout may
/// still have comes near the best.
void show_search(const SearchProgress& progress);

}}  // namespace plumb::tools
