#include "tools/reports/searched_order_report.h"

#include <fmt/format.h>

#include "schedules/time.h"
#include "tools/reports/table.h"
#include "traces/draw/time_text.h"

namespace plumb { inline namespace tools {

std::string searched_order_text(const SearchedOrder& searched) {
  const std::string before = duration_text(searched.step_before.count());
  const std::string gained =
      searched.is_quicker
          ? fmt::format(
                "its order, searched for its own costs with as many activations: {}, {:.2f} % less than the {} of "
                "{}\n",
                duration_text(searched.step.count()), 100 * (1 - searched.step / searched.step_before), before,
                searched.name_before)
          : fmt::format("no order that the search found within its memory is quicker than {}, with {}\n",
                        searched.plan.layout.schedule, before);
  return gained +
         fmt::format(
             "its compute takes {}, and no order with such backwards takes less than {} there; what binds is {}\n",
             time_text(SimTime{searched.time}), time_text(SimTime{searched.bound.time}), searched.bound.reason);
}

nlohmann::ordered_json searched_order_json(const SearchedOrder& searched) {
  return {{"is_quicker", searched.is_quicker},
          {"step_time_before_s", searched.step_before.count()},
          {"step_time_s", searched.step.count()},
          {"compute_makespan_s", to_seconds(SimTime{searched.time}).count()},
          {"compute_makespan_bound_s", to_seconds(SimTime{searched.bound.time}).count()},
          {"bound_reason", searched.bound.reason}};
}

}}  // namespace plumb::tools
