#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/plan_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/precision_note.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// Returns the layout without its split, which the notes print.
std::string keys_text(Layout layout) {
  layout.split.clear();
  return to_text(layout);
}

std::string ranking_text(const PlannedQuestion& planned) {
  const bool sequences = has_sequence(planned.pricing.model());
  TextTable table{
      .head = {"", "layout", "step time", "MFU", "bubble", sequences ? "tokens/s" : "samples/s", "peak memory"}};
  const auto name_of = [&](const Evaluation& ranked) {
    const StackSpec* stack = planned.pricing.stack_of(ranked.layout);
    return stack == nullptr ? std::string(kOwnExecutor) : stack->name;
  };
  const std::string first = name_of(planned.search.ranked.front());
  const bool differ = !std::ranges::all_of(planned.search.ranked, [&](const auto& r) { return name_of(r) == first; });
  if (differ) table.head.emplace_back("stack");
  for (const Evaluation& ranked : planned.search.ranked) {
    const StepSums& step = ranked.simulation;
    const StepRates& rates = ranked.rates;
    const std::int64_t peak = *std::ranges::max_element(step.peak_memory_bytes);
    table.rows.push_back({std::to_string(table.rows.size() + 1), keys_text(ranked.layout),
                          duration_text(step_time(step).count()), fmt::format("{:.1f} %", 100 * rates.mfu_ratio),
                          fmt::format("{:.1f} %", 100 * step.bubble_ratio),
                          fmt::format("{:.0f}", sequences ? rates.tokens_per_second : rates.samples_per_second),
                          bytes_text(static_cast<double>(peak))});
    if (differ) table.rows.back().push_back(name_of(ranked));
  }
  return to_text(table);
}

std::string batch_text(const Plan& plan) {
  if (!has_sequence(plan.model)) return fmt::format("{} samples", plan.training.global_batch);
  return fmt::format("{} sequences of {} tokens", plan.training.global_batch, plan.training.sequence);
}

/// Says which share of a peak the search has kept free; empty where it kept none.
std::string headroom_text(const PlannedQuestion& planned) {
  const double headroom = planned.pricing.memory_headroom(planned.search.ranked.front().layout);
  return headroom == 0 ? ""
                       : fmt::format("{:.3g} % of a peak of memory stays free besides (--headroom)\n", 100 * headroom);
}

std::string counts_text(const SearchCounts& counts) {
  return fmt::format(
      "{} layouts considered: {} simulated, {} too large, {} could not be faster than those kept; {} kinds cannot "
      "exist "
      "(--explain names them)\n",
      counts.enumerated, counts.simulated, counts.too_large, counts.outrun, counts.conflicts);
}

std::string rejections_text(const SearchResult& search) {
  std::string text = "\nwhy the others lost:\n";
  for (const Rejection& rejection : search.rejections)
    text += fmt::format("  {}: {}\n", to_text(rejection.layout), rejection.reason);
  return text;
}

Plan with_intervals(Plan plan) {
  plan.prediction->intervals = intervals_of(plan, plan.prediction->step);
  return plan;
}

ordered_json answer_json(const PlannedQuestion& planned, bool explain) {
  const std::vector<Evaluation>& ranked = planned.search.ranked;
  const auto layout_json = [&](const Evaluation& evaluation) -> ordered_json {
    const Plan plan = with_intervals(plan_of(planned, evaluation));
    ordered_json answer{
        {"layout", to_json(plan.layout)}, {"prediction", to_json(*plan.prediction)}, {"notes", notes_of(evaluation)}};
    add_stack(answer, plan.training);
    return answer;
  };
  const SearchCounts& c = planned.search.counts;
  ordered_json document = {{"feasible", !ranked.empty()}};
  document["best"] = ranked.empty() ? ordered_json(nullptr) : layout_json(ranked.front());
  document["ranked"] = ordered_json::array();
  for (const Evaluation& evaluation : ranked) document["ranked"].push_back(layout_json(evaluation));
  document["infeasible"] =
      planned.search.infeasible.empty() ? ordered_json(nullptr) : ordered_json(planned.search.infeasible);
  document["counts"] = {{"considered", c.enumerated},
                        {"simulated", c.simulated},
                        {"too_large", c.too_large},
                        {"outrun", c.outrun},
                        {"cannot_exist", c.conflicts}};
  if (explain) {
    document["rejections"] = ordered_json::array();
    for (const Rejection& rejection : planned.search.rejections) {
      document["rejections"].push_back({{"layout", to_text(rejection.layout)}, {"reason", rejection.reason}});
    }
  }
  return document;
}

}  // namespace

int plan_verb(const PlanArguments& arguments) {
  if (!arguments.output.empty()) require_writable(arguments.output);
  const PlannedQuestion planned =
      plan_question(arguments.question, {.keep = arguments.top, .explain = arguments.explain});
  if (arguments.json) print_answer(json_answer(answer_json(planned, arguments.explain)));
  if (planned.search.ranked.empty()) {
    if (arguments.explain && !arguments.json) print_answer(rejections_text(planned.search));
    print_note(fmt::format("plumb: {}", planned.search.infeasible));
    return kInfeasible;
  }
  const Evaluation& fastest = planned.search.ranked.front();
  const Plan best = with_intervals(plan_of(planned, fastest));
  if (!planned.switched.empty()) arguments.json ? print_note(planned.switched) : print_answer(planned.switched + "\n");
  if (!arguments.json) {
    print_answer(fmt::format("{} ({} parameters) on {} x {}, {} a step, {}\n{}\n\n", best.model.name,
                             parameters_text(static_cast<double>(model_parameter_count(best.model))),
                             best.cluster.devices, best.cluster.device.name, batch_text(best),
                             precision_name(best.training.precision), stack_text(best.training)));
    print_answer(ranking_text(planned) + fmt::format("\nthe best: {}\n", interval_text(best, fastest.simulation)) +
                 "\n" + counts_text(planned.search.counts) + headroom_text(planned));
    for (const std::string& note : notes_of(fastest)) print_answer("note on the best: " + note + "\n");
    if (arguments.explain) print_answer(rejections_text(planned.search));
  }
  if (const std::string note = slower_than_bf16(best, fastest.simulation); !note.empty()) print_note(note);
  if (!arguments.output.empty()) {
    write_file(arguments.output, json_answer(with_format(FileForm::kPlan, to_json(best, PLUMB_VERSION))));
    print_note(fmt::format("wrote {}", arguments.output));
  }
  return kDone;
}

}}  // namespace plumb::tools
