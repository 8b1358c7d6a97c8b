#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/spec/megatron_layout.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/plan_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/stop_signals.h"
#include "tools/reports/alternatives_report.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/precision_note.h"
#include "tools/reports/ranking_report.h"
#include "tools/reports/search_bar.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// The setting of the best row.
const PlannedQuestion& setting_of_best(const PlannedSettings& planned) {
  return planned.settings[planned.rows.front().setting];
}

const Evaluation& evaluation_of(const PlannedSettings& planned, const SettingRow& row) {
  return planned.settings[row.setting].search.ranked[row.row];
}

std::string batch_text(const Plan& plan) {
  if (!has_sequence(plan.model)) return fmt::format("{} samples", plan.training.global_batch);
  return fmt::format("{} sequences of {} tokens", plan.training.global_batch, plan.training.sequence);
}

/// True if the row's step is no longer than runs of the best may be.
bool is_within(const PlannedSettings& planned, const SettingRow& row, const Plan& best) {
  return step_time(evaluation_of(planned, row).simulation).count() <= best.prediction->intervals->step_time.high;
}

/// Only rows that are ranked by their time are held against it.
std::string rows_within_text(const PlannedSettings& planned, const Plan& best) {
  const auto rows = std::ranges::count_if(planned.rows, [&](const auto& row) { return is_within(planned, row, best); });
  return rows < 2 || planned.goal != Goal::kTime
             ? ""
             : fmt::format("rows 1 to {} lie in that interval: runs may rank them otherwise\n", rows);
}

/// Says which share of a peak the search has kept free; empty where it kept none.
std::string headroom_text(const PlannedSettings& planned) {
  const Layout& best = evaluation_of(planned, planned.rows.front()).layout;
  const double headroom = setting_of_best(planned).pricing.memory_headroom(best);
  return headroom == 0 ? ""
                       : fmt::format("{:.3g} % of a peak of memory stays free besides (--headroom)\n", 100 * headroom);
}

/// Returns of how many settings the answer has rows.
std::size_t settings_with_rows(const PlannedSettings& planned) {
  std::set<std::size_t> settings;
  for (const SettingRow& row : planned.rows) settings.insert(row.setting);
  return settings.size();
}

/// Returns the counts of all settings together.
SearchCounts total_counts(const PlannedSettings& planned) {
  SearchCounts sum;
  for (const PlannedQuestion& setting : planned.settings) sum += setting.search.counts;
  return sum;
}

std::string counts_text(const PlannedSettings& planned) {
  const SearchCounts counts = total_counts(planned);
  const std::size_t settings = planned.settings.size();
  return fmt::format(
      "{}{} choices of degrees and micro-batch: {} could hold the best; {} layouts of them were priced, {} of which "
      "are\n"
      "too large, and {} simulated on shared links; no other could be {}. {} kinds cannot exist or are not run by the\n"
      "framework (--explain names them)\n",
      settings == 1 ? "" : fmt::format("{} settings, {} of them with a row; ", settings, settings_with_rows(planned)),
      counts.families, counts.opened, counts.priced, counts.too_large, counts.simulated,
      planned.goal == Goal::kTime ? "faster" : "better", counts.conflicts);
}

/// Says how far the answer of a search that was stopped may be from the best of the settings that were searched.
std::string stopped_text(const PlannedSettings& planned) {
  const SearchResult& search = planned.settings.back().search;
  const double best = planned.rows.front().value;
  const double share = 100 * (1 - std::min(1.0, *search.stopped_at / best));
  const std::int64_t taken = search.counts.evaluations_until_stop;
  const std::string at_least =
      planned.goal == Goal::kTime
          ? fmt::format("takes less than {}, {:.3g} % less than the first row",
                        duration_text(std::min(best, *search.stopped_at)), share)
          : fmt::format("of the settings searched is better than the first row by more than {:.3g} %", share);
  return fmt::format("the search was stopped behind {} evaluations (--effort {} repeats it): no layout {}\n", taken,
                     taken, at_least);
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

ordered_json answer_json(const PlannedSettings& planned, bool explain) {
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

}  // namespace

int plan_verb(const PlanArguments& arguments) {
  if (!arguments.output.empty()) require_writable(arguments.output);
  const StopSignals signals;
  SearchBar bar;
  const PlannedSettings planned =
      plan_settings(question_of(arguments), arguments.aim, options_of(arguments, signals, bar));
  bar.clear();
  if (arguments.json) print_answer(json_answer(answer_json(planned, arguments.explain)));
  if (planned.rows.empty()) {
    if (arguments.explain && !arguments.json) print_answer(explanation_text(planned.settings.back()));
    print_note(fmt::format("plumb: {}", planned.infeasible));
    return kInfeasible;
  }
  const PlannedQuestion& setting = setting_of_best(planned);
  const Evaluation& fastest = evaluation_of(planned, planned.rows.front());
  const Plan best = with_intervals(plan_of(setting, fastest));
  if (!setting.switched.empty()) arguments.json ? print_note(setting.switched) : print_answer(setting.switched + "\n");
  if (!arguments.json) {
    print_answer(fmt::format("{} ({} parameters) on {} x {}, {} a step, {}\n{}\n\n", best.model.name,
                             parameters_text(static_cast<double>(model_parameter_count(best.model))),
                             best.cluster.devices, best.cluster.device.name, batch_text(best),
                             precision_name(best.training.precision), stack_text(best.training)));
    print_answer(ranking_text(planned) + fmt::format("\nthe best: {}\n", interval_text(best, fastest.simulation)) +
                 rows_within_text(planned, best) + "\n" +
                 (planned.settings.back().search.stopped_at ? stopped_text(planned) : counts_text(planned)) +
                 headroom_text(planned));
    for (const std::string& note : notes_of(fastest)) print_answer("note on the best: " + note + "\n");
    if (arguments.explain) print_answer(explanation_text(setting));
  }
  for (const std::string& note : stack_notes(setting.pricing, fastest.layout)) print_note(note);
  if (const std::string note = slower_than_bf16(best, fastest.simulation); !note.empty()) print_note(note);
  if (!arguments.output.empty()) {
    write_file(arguments.output, json_answer(with_format(FileForm::kPlan, to_json(best, PLUMB_VERSION))));
    print_note(fmt::format("wrote {}", arguments.output));
  }
  return kDone;
}

}}  // namespace plumb::tools
