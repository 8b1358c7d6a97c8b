#pragma once
// Plans: read from a file, or found for a question.

#include <string>
#include <vector>

#include "planner/search/plan.h"
#include "planner/search/search.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// The plan in a file. Throws InputError with file, place and remedy.
Plan plan_input(const std::string& path);

struct PlannedQuestion {
  std::vector<Plan> plans;  ///< best first; empty: nothing is feasible, search.infeasible says why
  SearchResult search;
  std::string switched;  ///< what was not asked for and had to be done, as a sentence; empty: nothing
};

/// Searches what the question leaves open. The layout's schedule may be a file: then only layouts of its ranks, stages
/// and micro-batches count. Throws as schedule_input does, and SpecError if pp or v say otherwise.
PlannedQuestion plan_question(const QuestionArguments& question, const SearchOptions& options);

}}  // namespace plumb::tools
