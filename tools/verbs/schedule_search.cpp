#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/text_form.h"
#include "schedules/passes/lower.h"
#include "schedules/search/certificate.h"
#include "schedules/search/order_program.h"
#include "schedules/search/search_schedule.h"
#include "simulator/simulate.h"
#include "tools/inputs/costs_file.h"
#include "tools/inputs/schedule_input.h"
#include "tools/inputs/search_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/progress.h"
#include "tools/io/stop_signals.h"
#include "tools/io/terminal.h"
#include "tools/io/usage.h"
#include "tools/machine/integer_solver.h"
#include "tools/pages/order_page.h"
#include "tools/pages/write_page.h"
#include "tools/reports/table.h"
#include "tools/verbs/schedule_curve.h"
#include "tools/verbs/verbs.h"
#include "traces/draw/time_text.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// The best of the questions' answers, and what is simulated of it.
struct SearchAnswer {
  SearchQuestion asked;
  FoundSchedule found;
  Simulation simulation;
  SearchHistory history;
};

SearchEffort effort_of(const ScheduleVerbArguments& arguments, const StopSignals& signals) {
  const auto start = std::chrono::steady_clock::now();
  const std::optional<double> limit = arguments.search.limit_seconds;
  SearchEffort effort;
  if (arguments.search.timed_actions > 0) effort.timed_actions = static_cast<double>(arguments.search.timed_actions);
  const auto spent = [start] { return Seconds{std::chrono::steady_clock::now() - start}; };
  effort.is_stopped = [=, &signals] { return signals.has_come() || (limit && spent().count() > *limit); };
  if (const std::int64_t nodes = arguments.search.solver_nodes; nodes > 0) {
    if (node_counting_solver().empty()) {
      throw SpecError(
          "--solver-nodes: no cbc and no highs is on PATH: install one (Debian's coinor-cbc), or leave it away");
    }
    effort.solver = [=](const std::string& program) {
      SolverLimits limits{.nodes = nodes};
      if (limit) limits.patience = std::max(Seconds{*limit} - spent(), Seconds{1});
      return machine_solver(limits)(program);
    };
  }
  if (shows_progress()) {
    effort.progress = [](std::int64_t time, std::int64_t bound) {
      set_progress(fmt::format("best so far {}, bound {}", time_text(SimTime{time}), time_text(SimTime{bound})),
                   static_cast<double>(bound) / static_cast<double>(time));
    };
  }
  return effort;
}

/// Returns the answer of the shortest time; nothing if no question has one.
std::optional<SearchAnswer> best_answer(SearchEffort effort, std::vector<SearchQuestion> questions,
                                        bool record_timeline) {
  effort.timed_actions /= static_cast<double>(questions.size());
  const auto show = effort.progress;
  std::optional<SearchAnswer> best;
  for (SearchQuestion& asked : questions) {
    SearchHistory history;
    effort.progress = [&history, &show](std::int64_t time, std::int64_t bound) {
      history.times.push_back(time);
      history.bounds.push_back(bound);
      if (show) show(time, bound);
    };
    std::optional<FoundSchedule> found = search_schedule(asked.question, effort, asked.starts);
    if (!found || (best && best->found.time <= found->time)) continue;
    best = SearchAnswer{
        .asked = std::move(asked), .found = std::move(*found), .simulation = {}, .history = std::move(history)};
  }
  if (best)
    best->simulation = simulate(lower(best->found.schedule), best->asked.table, {.record_timeline = record_timeline});
  return best;
}

ordered_json to_json(const SearchAnswer& answer, SimTime time, double gap_pct) {
  const bool by_span = answer.asked.question.objective == Objective::kSpan;
  const LowerBound& bound = answer.found.bound;
  const double bound_s = to_seconds(SimTime{bound.time}).count();
  ordered_json terms = ordered_json::array();
  for (const BoundTerm& term : bound.terms) {
    terms.push_back({{"what", term.what}, {"time_s", to_seconds(SimTime{term.time}).count()}});
  }
  return {{"schedule", answer.found.schedule.name},
          {"objective", objective_name(answer.asked.question.objective)},
          {"span_s", to_seconds(longest_span(answer.simulation)).count()},
          {"makespan_s", to_seconds(answer.simulation.makespan).count()},
          {"span_bound_s", by_span ? ordered_json(bound_s) : ordered_json(nullptr)},
          {"makespan_bound_s", by_span ? ordered_json(nullptr) : ordered_json(bound_s)},
          {"bound_reason", bound.reason},
          {"bound_terms", terms},
          {"gap_pct", gap_pct},
          {"bound_without_pairs", answer.asked.pairs_gain},
          {"proved_optimal", time.count() == bound.time && !answer.asked.pairs_gain},
          {"span_bubble_ratio", answer.simulation.span_bubble_ratio},
          {"bubble_ratio", answer.simulation.bubble_ratio},
          {"peak_activations", *std::ranges::max_element(answer.simulation.peak_activations)}};
}

/// Returns what was found, in a sentence.
std::string found_sentence(const SearchAnswer& answer, const ScheduleVerbArguments& arguments, SimTime time) {
  const Schedule& schedule = answer.found.schedule;
  const Simulation& simulation = answer.simulation;
  const bool by_span = answer.asked.question.objective == Objective::kSpan;
  const std::string_view what = objective_name(answer.asked.question.objective);
  const std::string title = fmt::format("{} p={} m={}", schedule.name, schedule.ranks.size(), schedule.microbatches);
  return fmt::format("{}: {} {}, bubble {:.2f} % of it, {} activations on a rank at most",
                     arguments.schedule.name.empty() ? title : titled(title, arguments.schedule), what, time_text(time),
                     100 * (by_span ? simulation.span_bubble_ratio : simulation.bubble_ratio),
                     *std::ranges::max_element(simulation.peak_activations));
}

/// Returns how far it can be from the best, in a sentence.
std::string certificate_sentence(const SearchAnswer& answer, const ScheduleVerbArguments& arguments, SimTime time,
                                 double gap_pct) {
  const bool by_span = answer.asked.question.objective == Objective::kSpan;
  const std::string_view what = objective_name(answer.asked.question.objective);
  const LowerBound& bound = answer.found.bound;
  const std::string_view among =
      by_span && is_of_ascending_orders(bound) ? "whose micro-batches ascend on every stage " : "";
  const std::string_view apart = answer.asked.pairs_gain ? "without other pairs than of a forward and a backward " : "";
  const std::string_view placed = arguments.schedule.name.empty() ? "of its placement " : "";
  return time.count() == bound.time
             ? fmt::format("proved optimal: no order {}{}within its memory {}has a shorter {}", placed, apart, among,
                           what)
             : fmt::format(
                   "no order {}{}within its memory has a {} below {}: this one is at most {:.2f} % above the best",
                   placed, apart, what, time_text(SimTime{bound.time}), gap_pct);
}

std::string to_text(const SearchAnswer& answer, const ScheduleVerbArguments& arguments, SimTime time, double gap_pct) {
  const LowerBound& bound = answer.found.bound;
  std::string text =
      found_sentence(answer, arguments, time) + "\n" + certificate_sentence(answer, arguments, time, gap_pct) + "\n";
  text += fmt::format("what binds is {}:\n", bound.reason);
  for (const BoundTerm& term : bound.terms) text += fmt::format("  {} {}\n", time_text(SimTime{term.time}), term.what);
  return text;
}

}  // namespace

int schedule_search_verb(const ScheduleVerbArguments& arguments) {
  if (!arguments.html.empty()) require_writable(arguments.html);
  const CostsOption costs = costs_input(arguments.costs);
  const StopSignals signals;
  const SearchEffort effort = effort_of(arguments, signals);
  std::vector<SearchQuestion> questions = search_questions(arguments, costs);
  if (std::ranges::any_of(questions, &SearchQuestion::pairs_gain)) {
    print_note(
        "plumb: pairs of other actions than a forward and a backward come apart in a search: an order with them may "
        "take less than its bound");
  }
  if (effort.solver &&
      std::ranges::none_of(questions, [](const SearchQuestion& asked) { return is_programmable(asked.question); })) {
    print_note(
        fmt::format("plumb: no solver is asked: it takes one lane, links that carry messages at once, and at most {} "
                    "slices of micro-batches on all stages",
                    kMostProgramPasses));
  }
  if (arguments.search.curve) return schedule_curve(arguments, questions, effort);
  const std::optional<SearchAnswer> answer = best_answer(effort, std::move(questions), !arguments.html.empty());
  if (!answer) {
    print_note("plumb: no order fits: a rank cannot hold one micro-batch on its way: give the ranks more memory");
    return kInfeasible;
  }
  const bool by_span = answer->asked.question.objective == Objective::kSpan;
  const SimTime time = by_span ? longest_span(answer->simulation) : answer->simulation.makespan;
  const double gap_pct = 100 * (to_seconds(time) / to_seconds(SimTime{answer->found.bound.time}) - 1);
  if (!arguments.output.empty()) {
    write_file(arguments.output, schedule_file_text(answer->found.schedule, arguments.output));
    print_note(fmt::format("wrote {}", arguments.output));
  }
  if (!arguments.certificate.empty()) {
    write_file(arguments.certificate, certificate_text(certificate_of(answer->asked.question, answer->found)));
    print_note(fmt::format("wrote {}", arguments.certificate));
  }
  if (!arguments.html.empty()) {
    write_page(arguments.html,
               order_page(answer->found, answer->simulation, answer->history, found_sentence(*answer, arguments, time),
                          certificate_sentence(*answer, arguments, time, gap_pct)));
  }
  if (arguments.json) {
    print_answer(json_answer(to_json(*answer, time, gap_pct)));
    return kDone;
  }
  print_text(to_text(*answer, arguments, time, gap_pct));
  if (arguments.output.empty()) print_text(to_text(answer->found.schedule));
  return kDone;
}

}}  // namespace plumb::tools
