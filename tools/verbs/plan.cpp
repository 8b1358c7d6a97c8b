#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/partition/balanced_partition.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/plan_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/stop_signals.h"
#include "tools/reports/alternatives_report.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/precision_note.h"
#include "tools/reports/search_bar.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// Returns the layout, with runs of equal numbers of its split written once. A split that the stack or costs make is
/// none of its keys.
std::string keys_text(Layout layout) {
  const std::vector<int> split = std::exchange(layout.split, {});
  return to_text(layout) + (split.empty() ? "" : fmt::format(",split={}", runs_text(split)));
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
  table.head.emplace_back("variants");
  for (std::size_t row = 0; row < planned.search.ranked.size(); ++row) {
    const Evaluation& ranked = planned.search.ranked[row];
    const StepSums& step = ranked.simulation;
    const StepRates& rates = ranked.rates;
    const std::int64_t peak = *std::ranges::max_element(step.peak_memory_bytes);
    table.rows.push_back({std::to_string(table.rows.size() + 1), keys_text(ranked.layout),
                          duration_text(step_time(step).count()), fmt::format("{:.1f} %", 100 * rates.mfu_ratio),
                          fmt::format("{:.1f} %", 100 * step.bubble_ratio),
                          fmt::format("{:.0f}", sequences ? rates.tokens_per_second : rates.samples_per_second),
                          bytes_text(static_cast<double>(peak))});
    if (differ) table.rows.back().push_back(name_of(ranked));
    table.rows.back().push_back(variants_text(ranked.layout, planned.search.variants[row]));
  }
  return to_text(table);
}

std::string batch_text(const Plan& plan) {
  if (!has_sequence(plan.model)) return fmt::format("{} samples", plan.training.global_batch);
  return fmt::format("{} sequences of {} tokens", plan.training.global_batch, plan.training.sequence);
}

/// Returns the number of rows whose step is no longer than runs of the best may be.
std::int64_t rows_within(const PlannedQuestion& planned, const Plan& best) {
  const Seconds longest{best.prediction->intervals->step_time.high};
  return std::ranges::count_if(planned.search.ranked,
                               [&](const Evaluation& row) { return step_time(row.simulation) <= longest; });
}

std::string rows_within_text(std::int64_t rows) {
  return rows < 2 ? "" : fmt::format("rows 1 to {} lie in that interval: runs may rank them otherwise\n", rows);
}

/// Says which share of a peak the search has kept free; empty where it kept none.
std::string headroom_text(const PlannedQuestion& planned) {
  const double headroom = planned.pricing.memory_headroom(planned.search.ranked.front().layout);
  return headroom == 0 ? ""
                       : fmt::format("{:.3g} % of a peak of memory stays free besides (--headroom)\n", 100 * headroom);
}

std::string counts_text(const SearchCounts& counts) {
  return fmt::format(
      "{} choices of degrees and micro-batch: {} could hold the best, with {} layouts that may fit: {} priced, {} of\n"
      "them too large and {} simulated on shared links; no other could be faster. {} kinds cannot exist or are not "
      "run\n"
      "by the framework (--explain names them)\n",
      counts.families, counts.opened, counts.enumerated, counts.priced, counts.too_large, counts.simulated,
      counts.conflicts);
}

/// Says how far the answer of a search that was stopped may be from the best.
std::string stopped_text(const SearchResult& search) {
  const double best = seconds(search.ranked.front().simulation.makespan);
  const double shorter = 1 - std::min(1.0, *search.stopped_at / best);
  return fmt::format(
      "the search was stopped behind {} evaluations (--effort {} repeats it): no layout takes less than {}, "
      "{:.3g} % less than the first row\n",
      search.counts.evaluations_until_stop, search.counts.evaluations_until_stop,
      duration_text(std::min(best, *search.stopped_at)), 100 * shorter);
}

std::string explanation_text(const PlannedQuestion& planned) {
  const SearchResult& search = planned.search;
  std::string text = search.other_values.empty() ? "" : other_values_text(planned.pricing, search);
  if (!search.losers.empty()) text += "\nthe other layouts:\n";
  for (const Rejection& loser : search.losers) text += fmt::format("  {}: {}\n", to_text(loser.layout), loser.reason);
  return text + conflicts_text(search.conflicts);
}

/// Returns the question with the family's keys fixed, too.
QuestionArguments question_of(const PlanArguments& arguments) {
  QuestionArguments question = arguments.question;
  if (!arguments.family.empty()) question.layout += (question.layout.empty() ? "" : ",") + arguments.family;
  return question;
}

SearchOptions options_of(const PlanArguments& arguments, const StopSignals& signals, SearchBar& bar) {
  const auto start = std::chrono::steady_clock::now();
  const Seconds limit = arguments.time_limit_s > 0 ? Seconds{arguments.time_limit_s} : Seconds::max();
  return {.threads = arguments.threads,
          .keep = arguments.top,
          .by_key = arguments.explain && arguments.family.empty(),
          .explain = !arguments.family.empty(),
          .most_evaluations = arguments.effort,
          .stop = [&signals, &bar, start, limit](const SearchProgress& progress) {
            bar.show(progress);
            return signals.has_come() || std::chrono::steady_clock::now() - start > limit;
          }};
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
  const std::int64_t within =
      ranked.empty() ? 0 : rows_within(planned, with_intervals(plan_of(planned, ranked.front())));
  for (std::size_t row = 0; row < ranked.size(); ++row) {
    document["ranked"].push_back(layout_json(ranked[row]));
    document["ranked"].back()["within_interval_of_best"] = static_cast<std::int64_t>(row) < within;
    document["ranked"].back()["variants"] = ordered_json::array();
    for (const Layout& variant : planned.search.variants[row])
      document["ranked"].back()["variants"].push_back(to_json(variant));
  }
  document["infeasible"] =
      planned.search.infeasible.empty() ? ordered_json(nullptr) : ordered_json(planned.search.infeasible);
  document["stopped"] = nullptr;
  if (planned.search.stopped_at) {
    document["stopped"] = {{"evaluations", c.evaluations_until_stop}, {"no_step_below_s", *planned.search.stopped_at}};
  }
  document["counts"] = {{"families", c.families},     {"opened", c.opened}, {"kinds_too_large", c.cores_too_large},
                        {"considered", c.enumerated}, {"priced", c.priced}, {"simulated", c.simulated},
                        {"too_large", c.too_large},   {"outrun", c.outrun}, {"cannot_exist", c.conflicts}};
  if (explain) {
    if (!ranked.empty()) document["other_values"] = other_values_json(planned.pricing, planned.search);
    document["rejections"] = ordered_json::array();
    for (const auto* rejections : {&planned.search.conflicts, &planned.search.losers}) {
      for (const Rejection& one : *rejections)
        document["rejections"].push_back({{"layout", to_text(one.layout)}, {"reason", one.reason}});
    }
  }
  return document;
}

}  // namespace

int plan_verb(const PlanArguments& arguments) {
  if (!arguments.output.empty()) require_writable(arguments.output);
  const StopSignals signals;
  SearchBar bar;
  const PlannedQuestion planned = plan_question(question_of(arguments), options_of(arguments, signals, bar));
  bar.clear();
  if (arguments.json) print_answer(json_answer(answer_json(planned, arguments.explain)));
  if (planned.search.ranked.empty()) {
    if (arguments.explain && !arguments.json) print_answer(explanation_text(planned));
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
                 rows_within_text(rows_within(planned, best)) + "\n" +
                 (planned.search.stopped_at ? stopped_text(planned.search) : counts_text(planned.search.counts)) +
                 headroom_text(planned));
    for (const std::string& note : notes_of(fastest)) print_answer("note on the best: " + note + "\n");
    if (arguments.explain) print_answer(explanation_text(planned));
  }
  for (const std::string& note : stack_notes(planned.pricing, fastest.layout)) print_note(note);
  if (const std::string note = slower_than_bf16(best, fastest.simulation); !note.empty()) print_note(note);
  if (!arguments.output.empty()) {
    write_file(arguments.output, json_answer(with_format(FileForm::kPlan, to_json(best, PLUMB_VERSION))));
    print_note(fmt::format("wrote {}", arguments.output));
  }
  return kDone;
}

}}  // namespace plumb::tools
