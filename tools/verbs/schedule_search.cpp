#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/forms/json_text.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/generators/generators.h"
#include "schedules/liveness.h"
#include "schedules/passes/lower.h"
#include "schedules/synthesis/fit_to_costs.h"
#include "simulator/simulate.h"
#include "tools/inputs/costs_option.h"
#include "tools/inputs/schedule_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/verbs/verbs.h"
#include "traces/draw/time_text.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

bool is_made_for_costs(const std::string& name) {
  const std::vector<std::string_view> made = schedules_made_for_costs();
  return std::ranges::find(made, name) != made.end();
}

bool has_whole_backwards(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::find(actions, Op::kBackward, &Action::op) != actions.end();
  });
}

/// Returns the schedule that its generator makes for the costs, or the one that is found from an order of the catalogue
/// or of a file with no more activations.
Schedule searched(const ScheduleArguments& arguments, const CostsOption& costs) {
  Schedule schedule = schedule_input(arguments, costs.chunk);
  if (is_made_for_costs(schedule.name)) return schedule;
  int most_activations = 0;
  for (const RankLiveness& rank : liveness(schedule)) most_activations = std::max(most_activations, rank.peak);
  const OrderCosts taken = order_costs(costs_for(costs, schedule), has_whole_backwards(schedule));
  return fit_to_costs({schedule}, taken, most_activations);
}

}  // namespace

int schedule_search_verb(const ScheduleVerbArguments& arguments) {
  const CostsOption costs = read_option([&] { return parse_costs(arguments.costs.empty() ? "c=0" : arguments.costs); });
  const Schedule schedule = searched(arguments.schedule, costs);
  const std::string& name = schedule.name;
  const CostTable table = costs_for(costs, schedule);
  const Simulation simulation = simulate(lower(schedule), table, {.record_timeline = false});
  const SimTime span = longest_span(simulation);
  const SimTime bound = name == "zb-auto" ? zb_auto_bound(parameters_of(arguments.schedule, costs.chunk))
                                          : *std::ranges::max_element(simulation.busy);
  const double gap_pct = 100 * (to_seconds(span) / to_seconds(bound) - 1);
  const int activations = *std::ranges::max_element(simulation.peak_activations);

  if (!arguments.output.empty()) {
    write_file(arguments.output, schedule_file_text(schedule, arguments.output));
    print_note(fmt::format("wrote {}", arguments.output));
  }
  if (arguments.json) {
    print_answer(json_answer(ordered_json{{"schedule", name},
                                          {"span_s", to_seconds(span).count()},
                                          {"span_bound_s", to_seconds(bound).count()},
                                          {"gap_pct", gap_pct},
                                          {"span_bubble_ratio", simulation.span_bubble_ratio},
                                          {"peak_activations", activations}}));
    return kDone;
  }
  print_answer(fmt::format(
      "{}: span {}, bubble {:.2f} % of it, {} activations on a rank at most\n",
      titled(fmt::format("{} p={} m={}", name, schedule.ranks.size(), schedule.microbatches), arguments.schedule),
      time_text(span), 100 * simulation.span_bubble_ratio, activations));
  print_answer(span == bound
                   ? "no order has a shorter span\n"
                   : fmt::format("no order has a span below {}: this one is at most {:.2f} % above the best\n",
                                 time_text(bound), gap_pct));
  if (arguments.output.empty()) print_answer(to_text(schedule));
  return kDone;
}

}}  // namespace plumb::tools
