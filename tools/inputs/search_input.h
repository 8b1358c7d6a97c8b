#pragma once
// The command line of `schedule search` as questions to the search: one for a given schedule, file or plan,
// and one for each placement where the placement is open.

#include <string>
#include <vector>

#include "schedules/bounds/order_question.h"
#include "schedules/cost_table.h"
#include "tools/inputs/arguments.h"
#include "tools/inputs/costs_option.h"

namespace plumb { inline namespace tools {

struct SearchQuestion {
  OrderQuestion question;
  CostTable table;                    ///< the costs of the question are taken from it
  std::vector<Schedule> starts;       ///< orders that the user has
  bool pairs_gain = false;            ///< an overlapped pair that has come apart took less time together
  std::int64_t activation_units = 0;  ///< of memory, where it counts activations; 0: it counts bytes
};

/// Returns the questions. A schedule, file or plan has its placement, and its own memory unless
/// --max-activations gives another; backwards stay whole where it has them whole. Without one, costs are of
/// one of ranks times chunks parts of the model, which placements join. Throws UsageError for options that do
/// not go together, SpecError for costs that do not fit, and as schedule_input and plan_input do.
std::vector<SearchQuestion> search_questions(const ScheduleVerbArguments& arguments, const CostsOption& costs);

}}  // namespace plumb::tools
