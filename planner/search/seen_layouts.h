#pragma once
// Says what a search has seen of the layouts that are open, for its answer.
//
//   SearchCounts counts = counts_of(candidates);
//   std::string sentence = why_none_is_feasible(candidates);

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "planner/search/candidates.h"
#include "planner/search/search.h"

namespace plumb { inline namespace planner {

/// Returns the counts of a search that has ended.
SearchCounts counts_of(const Candidates& candidates);

/// Returns what each layout takes that is not among the `rows`, or why it does not fit.
std::vector<Rejection> losers_of(Candidates& candidates, std::span<const std::size_t> rows);

/// Returns the layouts whose step and memory were learned.
std::vector<LearnedLayout> learned_of(const Candidates& candidates);

/// Returns why no layout is feasible: by how much the closest one is not, and the nearest change that helps.
std::string why_none_is_feasible(Candidates& candidates);

}}  // namespace plumb::planner
