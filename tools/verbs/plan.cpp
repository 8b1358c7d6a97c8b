#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/search/evaluate_plan.h"
#include "planner/spec/megatron_layout.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/plan_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/stop_signals.h"
#include "tools/pages/plan_page.h"
#include "tools/pages/write_page.h"
#include "tools/reports/alternatives_report.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/plan_report.h"
#include "tools/reports/precision_note.h"
#include "tools/reports/ranking_report.h"
#include "tools/reports/search_progress.h"
#include "tools/reports/searched_order_report.h"
#include "tools/reports/simulation_context.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// Returns the question with the family's keys fixed, too.
QuestionArguments question_of(const PlanArguments& arguments) {
  QuestionArguments question = arguments.question;
  if (!arguments.family.empty()) question.layout += (question.layout.empty() ? "" : ",") + arguments.family;
  return question;
}

SearchOptions options_of(const PlanArguments& arguments, const StopSignals& signals) {
  const auto start = std::chrono::steady_clock::now();
  const Seconds limit = arguments.time_limit_s > 0 ? Seconds{arguments.time_limit_s} : Seconds::max();
  return {.threads = arguments.threads,
          .keep = arguments.top,
          .by_key = arguments.explain && arguments.family.empty(),
          .explain = !arguments.family.empty(),
          .list_learned = !arguments.html.empty(),
          .most_evaluations = arguments.effort,
          .stop = [&signals, start, limit](const SearchProgress& progress) {
            show_search(progress);
            return signals.has_come() || std::chrono::steady_clock::now() - start > limit;
          }};
}

Plan with_intervals(Plan plan) {
  plan.prediction->intervals = intervals_of(plan, plan.prediction->step);
  return plan;
}

ordered_json row_json(const PlannedSettings& planned, const SettingRow& row) {
  const PlannedQuestion& setting = planned.settings[row.setting];
  const Evaluation& evaluation = evaluation_of(planned, row);
  const Plan plan = with_intervals(plan_of(setting, evaluation));
  ordered_json answer{{"layout", to_json(plan.layout)},
                      {"prediction", to_json(*plan.prediction)},
                      {"notes", notes_of(evaluation)},
                      {"setting",
                       {{"cluster", plan.cluster.name},
                        {"devices", plan.cluster.devices},
                        {"precision", precision_name(plan.training.precision)},
                        {"optimizer", optimizer_name(plan.training.optimizer)}}},
                      {"goal", goal_json(planned, row)},
                      {"pipeline_model_parallel_layout", nullptr}};
  if (plan.layout.pipeline > 1 && !plan.model.graph)
    answer["pipeline_model_parallel_layout"] = megatron_layout(plan.layout.split, plan.model.mtp_modules);
  add_stack(answer, plan.training);
  return answer;
}

ordered_json counts_json(const SearchCounts& c) {
  return {{"families", c.families}, {"opened", c.opened},         {"kinds_too_large", c.cores_too_large},
          {"priced", c.priced},     {"simulated", c.simulated},   {"too_large", c.too_large},
          {"outrun", c.outrun},     {"cannot_exist", c.conflicts}};
}

/// Searches the order of the best row; a signal or the time limit ends it with the best so far.
std::optional<SearchedOrder> searched_best(const PlannedSettings& planned, const PlanArguments& arguments,
                                           const StopSignals& signals) {
  if (!arguments.searches_order || planned.rows.empty()) return std::nullopt;
  const Plan best = plan_of(setting_of_best(planned), evaluation_of(planned, planned.rows.front()));
  const auto start = std::chrono::steady_clock::now();
  const Seconds limit = arguments.time_limit_s > 0 ? Seconds{arguments.time_limit_s} : Seconds::max();
  return search_order_of(best, {.is_stopped = [&signals, start, limit] {
                           return signals.has_come() || std::chrono::steady_clock::now() - start > limit;
                         }});
}

ordered_json answer_json(const PlannedSettings& planned, const std::optional<SearchedOrder>& searched, bool explain) {
  ordered_json document = {{"feasible", !planned.rows.empty()}};
  document["best"] = planned.rows.empty() ? ordered_json(nullptr) : row_json(planned, planned.rows.front());
  document["ranked"] = ordered_json::array();
  std::optional<Plan> best;
  if (!planned.rows.empty())
    best = with_intervals(plan_of(setting_of_best(planned), evaluation_of(planned, planned.rows.front())));
  for (const SettingRow& row : planned.rows) {
    ordered_json& entry = document["ranked"].emplace_back(row_json(planned, row));
    entry["within_interval_of_best"] = is_within(planned, row, *best);
    entry["variants"] = ordered_json::array();
    for (const Layout& variant : planned.settings[row.setting].search.variants[row.row])
      entry["variants"].push_back(to_json(variant));
  }
  document["infeasible"] = planned.infeasible.empty() ? ordered_json(nullptr) : ordered_json(planned.infeasible);
  const SearchResult& last = planned.settings.back().search;
  document["stopped"] = nullptr;
  if (last.stopped_at) {
    const double below =
        planned.rows.empty() ? *last.stopped_at : std::min(*last.stopped_at, planned.rows.front().value);
    document["stopped"] = {
        {"evaluations", last.counts.evaluations_until_stop}, {"no_value_below", below}, {"no_step_below_s", nullptr}};
    if (planned.goal == Goal::kTime) document["stopped"]["no_step_below_s"] = below;
  }
  document["counts"] = counts_json(total_counts(planned));
  document["searched_order"] = searched ? searched_order_json(*searched) : ordered_json(nullptr);
  if (explain) {
    if (!planned.rows.empty()) document["other_values"] = other_values_json(planned.settings.front().pricing, last);
    document["rejections"] = ordered_json::array();
    for (const auto* rejections : {&last.conflicts, &last.losers}) {
      for (const Rejection& one : *rejections)
        document["rejections"].push_back({{"layout", to_text(one.layout)}, {"reason", one.reason}});
    }
  }
  return document;
}

/// Returns the layouts that no other beats in both step time and memory, where one setting was searched for its time.
SearchResult front_of(const PlanArguments& arguments, const PlannedSettings& planned) {
  if (planned.settings.size() > 1 || planned.goal != Goal::kTime) return {};
  AimArguments aim = arguments.aim;
  aim.front = "memory";
  const StopSignals signals;
  SearchOptions options = options_of(arguments, signals);
  options.by_key = options.explain = options.list_learned = false;
  PlannedSettings front = plan_settings(question_of(arguments), aim, options);
  return std::move(front.settings.front().search);
}

Page page_of(const PlanArguments& arguments, const PlannedSettings& planned, const Plan& best) {
  Pricing pricing(best.model, best.cluster, best.training);
  const NetworkOptions network;
  Evaluation evaluation = evaluate(pricing, best, std::nullopt, {.network = network});
  ReportContext context = context_of(best, evaluation, network, Sends::kBuffered);
  return plan_page(planned, {.best = best,
                             .simulation = std::move(evaluation.simulation),
                             .context = std::move(context),
                             .front = front_of(arguments, planned)});
}

}  // namespace

int plan_verb(const PlanArguments& arguments) {
  for (const std::string& path : {arguments.output, arguments.html})
    if (!path.empty()) require_writable(path);
  const StopSignals signals;
  const PlannedSettings planned = plan_settings(question_of(arguments), arguments.aim, options_of(arguments, signals));
  const std::optional<SearchedOrder> searched = searched_best(planned, arguments, signals);
  if (arguments.json) print_answer(json_answer(answer_json(planned, searched, arguments.explain)));
  if (planned.rows.empty()) {
    if (arguments.explain && !arguments.json) print_text(explanation_text(planned.settings.back()));
    print_note(fmt::format("plumb: {}", planned.infeasible));
    return kInfeasible;
  }
  const PlannedQuestion& setting = setting_of_best(planned);
  const Evaluation& fastest = evaluation_of(planned, planned.rows.front());
  const Plan best = with_intervals(plan_of(setting, fastest));
  if (!setting.switched.empty()) arguments.json ? print_note(setting.switched) : print_text(setting.switched + "\n");
  if (!arguments.json) {
    print_text(plan_text(planned, best, arguments.output));
    if (searched) print_text(searched_order_text(*searched));
    if (arguments.explain) print_text(explanation_text(setting));
  }
  if (!arguments.html.empty()) write_page(arguments.html, page_of(arguments, planned, best), &best);
  for (const std::string& note : stack_notes(setting.pricing, fastest.layout)) print_note(note);
  if (const std::string note = slower_than_bf16(best, fastest.simulation); !note.empty()) print_note(note);
  if (!arguments.output.empty()) {
    const Plan written = searched ? with_intervals(searched->plan) : best;
    write_file(arguments.output, json_answer(with_format(FileForm::kPlan, to_json(written, PLUMB_VERSION))));
    print_note(fmt::format("wrote {}", arguments.output));
  }
  return kDone;
}

}}  // namespace plumb::tools
