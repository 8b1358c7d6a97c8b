#pragma once
// Plans: read from a file, or found for a question.

#include <optional>
#include <string>

#include "planner/search/plan.h"
#include "planner/search/search.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// The plan in a file. Throws InputError with file, place and remedy.
Plan plan_input(const std::string& path);

/// A question and its answer: the prices that the search used, and the layouts that it found.
struct PlannedQuestion {
  Pricing pricing;
  std::optional<Schedule> order;  ///< the user's own
  SearchResult search;            ///< search.ranked is empty where nothing is feasible; search.infeasible says why
  std::string switched;           ///< what had to be done although nobody asked for it, as a sentence; empty: nothing
};

/// Searches the keys of the layout that the question leaves open. The layout's schedule may be a file. Throws as
/// schedule_input and search_layouts do.
PlannedQuestion plan_question(const QuestionArguments& question, const SearchOptions& options);

/// The plan of a layout that was found.
Plan plan_of(const PlannedQuestion& planned, const Evaluation& ranked);

}}  // namespace plumb::tools
