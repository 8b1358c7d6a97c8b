#include "planner/search/whatif.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/search/evaluate_plan.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/plan_input.h"
#include "tools/inputs/variation_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/pages/whatif_page.h"
#include "tools/pages/write_page.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/simulation_context.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/whatif_report.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

void write_noted(const std::string& path, const std::string& text) {
  write_file(path, text);
  print_note(fmt::format("wrote {}", path));
}

/// Returns what the step of the plan that is varied is sensitive to.
std::vector<ResourceSensitivity> sensitivity_of(const Plan& plan) {
  Pricing pricing(plan.model, plan.cluster, plan.training);
  const NetworkOptions network;
  const Evaluation evaluation = evaluate(pricing, plan, std::nullopt, {.network = network});
  if (!evaluation.exists) return {};
  return context_of(plan, evaluation, network, Sends::kBuffered).by_resource;
}

int print_break_even(const Plan& plan, const Variation& two, const std::string& range_text,
                     const WhatIfOptions& options, bool json) {
  const FigureRange range = read_option([&] { return parse_figure_range(range_text); });
  const BreakEven found = read_option([&] { return break_even(plan, two, range, options); });
  json ? print_answer(json_answer(break_even_json(found, two, range))) : print_text(break_even_text(found, two, range));
  return kDone;
}

}  // namespace

int whatif_verb(const WhatifArguments& arguments) {
  for (const std::string& path : {arguments.csv, arguments.svg, arguments.html})
    if (!path.empty()) require_writable(path);
  const AskedPlan asked = asked_plan(arguments.plan, arguments.question);
  if (!asked.plan) {
    print_note("plumb: " + asked.infeasible);
    return kInfeasible;
  }
  const Plan& plan = *asked.plan;
  std::vector<Variation> variations;
  for (const std::string& text : arguments.vary) variations.push_back(variation_input(text, plan));
  WhatIfOptions options{.replan = arguments.replan, .assumable = assumable_stacks(arguments.question)};
  if (!arguments.break_even.empty())
    return print_break_even(plan, variations.front(), arguments.break_even, options, arguments.json);
  options.intervals = [](const Plan& of, const StepSums& predicted) { return intervals_of(of, predicted); };
  const std::vector<WhatIfRow> rows = read_option([&] { return whatif(plan, variations, options); });
  const std::string title = fmt::format("{} on {}", plan.model.name, plan.cluster.name);
  if (arguments.json) {
    ordered_json answer = whatif_json(rows);
    add_stack(answer, plan.training);
    print_answer(json_answer(answer));
  } else {
    const std::vector<std::string> infeasible = infeasible_rows(rows);
    print_text(fmt::format("{}, {}\n\n{}{}", title, stack_text(plan.training), to_text(whatif_table(rows, false)),
                           infeasible.empty() ? "" : fmt::format("\n{}\n", fmt::join(infeasible, "\n"))));
  }
  if (!arguments.csv.empty()) write_noted(arguments.csv, to_csv(whatif_table(rows, true)));
  if (!arguments.svg.empty()) write_noted(arguments.svg, whatif_svg(rows, title));
  if (!arguments.html.empty()) write_page(arguments.html, whatif_page(plan, rows, sensitivity_of(plan)), &plan);
  for (const std::string& sentence : idle_keys(rows)) print_note(sentence);
  const auto feasible = std::ranges::count_if(rows, [](const WhatIfRow& row) { return row.infeasible.empty(); });
  if (feasible < std::ssize(rows) && !arguments.replan && !plan.order) {
    print_note(
        "each row kept the plan's layout and split but for the replicas: --replan searches the best layout of each row "
        "anew");
  }
  return feasible > 0 ? kDone : kInfeasible;
}

}}  // namespace plumb::tools
