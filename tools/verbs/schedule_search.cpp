#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/generators/generators.h"
#include "schedules/lower.h"
#include "simulator/simulate.h"
#include "tools/console.h"
#include "tools/costs_option.h"
#include "tools/files.h"
#include "tools/schedule_input.h"
#include "tools/verbs/verbs.h"
#include "traces/time_text.h"

namespace plumb {
namespace {

using nlohmann::ordered_json;

SimTime longest_span(const Simulation& simulation) {
  SimTime longest{0};
  for (std::size_t r = 0; r < simulation.busy.size(); ++r) {
    longest = std::max(longest, simulation.last_end[r] - simulation.first_start[r]);
  }
  return longest;
}

}  // namespace

int schedule_search_verb(const ScheduleVerbArguments& arguments) {
  std::string name = arguments.schedule.name;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::vector<std::string_view> searched = schedules_made_for_costs();
  if (names_schedule_file(name) || std::ranges::find(searched, name) == searched.end()) {
    throw InputError(fmt::format("{}: what can be searched is {}: name one, with -p, -m and --costs", name,
                                 fmt::join(searched, ", ")));
  }
  const CostsOption costs = parse_costs(arguments.costs.empty() ? "c=0" : arguments.costs);
  const ScheduleParameters parameters = parameters_of(arguments.schedule, costs.chunk);
  const Schedule schedule = make_schedule(name, parameters);
  const CostTable table = costs_for(costs, schedule);
  const Simulation simulation = simulate(lower(schedule), table, {.record_timeline = false});
  const SimTime span = longest_span(simulation);
  const SimTime bound = name == "zb-auto" ? zb_auto_bound(parameters) : *std::ranges::max_element(simulation.busy);
  const double gap_pct = 100 * (to_seconds(span) / to_seconds(bound) - 1);
  const int activations = *std::ranges::max_element(simulation.peak_activations);

  if (!arguments.output.empty()) {
    write_file(arguments.output, schedule_file_text(schedule, arguments.output));
    print_note(fmt::format("wrote {}", arguments.output));
  }
  if (arguments.json) {
    print_answer(ordered_json{{"schedule", name},
                              {"span_s", to_seconds(span).count()},
                              {"span_bound_s", to_seconds(bound).count()},
                              {"gap_pct", gap_pct},
                              {"span_bubble_ratio", simulation.span_bubble_ratio},
                              {"peak_activations", activations}}
                     .dump(2) +
                 "\n");
    return kDone;
  }
  print_answer(fmt::format("{} p={} m={}: span {}, bubble {:.2f} % of it, {} activations on a rank at most\n", name,
                           schedule.ranks.size(), schedule.microbatches, time_text(span),
                           100 * simulation.span_bubble_ratio, activations));
  print_answer(span == bound
                   ? "no order has a shorter span\n"
                   : fmt::format("no order has a span below {}: this one is at most {:.2f} % above the best\n",
                                 time_text(bound), gap_pct));
  if (arguments.output.empty()) print_answer(to_text(schedule));
  return kDone;
}

}  // namespace plumb
