#include "tools/reports/plan_report.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "planner/spec/cluster_sites.h"
#include "planner/spec/short_layout.h"
#include "tools/inputs/target_input.h"
#include "tools/reports/alternatives_report.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/ranking_report.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/step_line.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

std::string batch_text(const Plan& plan) {
  if (!has_sequence(plan.model)) return fmt::format("{} samples", plan.training.global_batch);
  return fmt::format("{} sequences of {} tokens", plan.training.global_batch, plan.training.sequence);
}

/// Only rows that are ranked by their time are held against it.
std::string rows_within_text(const PlannedSettings& planned, const Plan& best) {
  const auto rows = std::ranges::count_if(planned.rows, [&](const auto& row) { return is_within(planned, row, best); });
  return rows < 2 || planned.goal != Goal::kTime
             ? ""
             : fmt::format("rows 1 to {} lie in the interval of the best: runs may rank them otherwise", rows) + "\n";
}

/// Returns of how many settings the answer has rows.
std::size_t settings_with_rows(const PlannedSettings& planned) {
  std::set<std::size_t> settings;
  for (const SettingRow& row : planned.rows) settings.insert(row.setting);
  return settings.size();
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
  return fmt::format("the search was stopped behind {} evaluations (--effort {} repeats it): no layout {}", taken,
                     taken, at_least);
}

std::string counts_text(const PlannedSettings& planned) {
  const SearchCounts counts = total_counts(planned);
  const std::size_t settings = planned.settings.size();
  const bool by_time = planned.goal == Goal::kTime;
  const std::int64_t slower = counts.outrun + counts.simulated - std::ssize(planned.rows);
  return fmt::format(
      "what lost: {}{} layouts and {} kinds of layouts are too large, {} layouts are {}, {} of {} choices of degrees "
      "and "
      "micro-batch cannot be {} by a bound alone, {} kinds cannot exist or are not run by the framework (--explain "
      "names "
      "them)",
      settings == 1 ? "" : fmt::format("{} settings, {} of them with a row; ", settings, settings_with_rows(planned)),
      counts.too_large, counts.cores_too_large, slower, by_time ? "slower" : "worse", counts.families - counts.opened,
      counts.families, by_time ? "faster" : "better", counts.conflicts);
}

/// Says which share of a peak the search has kept free; empty where it kept none.
std::string headroom_text(const PlannedSettings& planned) {
  const Layout& best = evaluation_of(planned, planned.rows.front()).layout;
  const double headroom = setting_of_best(planned).pricing.memory_headroom(best);
  return headroom == 0 ? "" : fmt::format("; {:.3g} % of a peak of memory stays free (--headroom)", 100 * headroom);
}

/// Returns the keys of a layout. The stack or the costs make the split, or it was given.
std::string keys_text(Layout layout) {
  layout.split.clear();
  return to_text(layout);
}

}  // namespace

const PlannedQuestion& setting_of_best(const PlannedSettings& planned) {
  return planned.settings[planned.rows.front().setting];
}

const Evaluation& evaluation_of(const PlannedSettings& planned, const SettingRow& row) {
  return planned.settings[row.setting].search.ranked[row.row];
}

bool is_within(const PlannedSettings& planned, const SettingRow& row, const Plan& best) {
  return step_time(evaluation_of(planned, row).simulation).count() <= best.prediction->intervals->step_time.high;
}

SearchCounts total_counts(const PlannedSettings& planned) {
  SearchCounts sum;
  for (const PlannedQuestion& setting : planned.settings) sum += setting.search.counts;
  return sum;
}

std::string plan_verdict(const Plan& best) {
  return fmt::format("{}: {}", short_text(best.layout),
                     to_text(step_line(best, best.prediction->step, best.prediction->rates)));
}

std::string question_text(const Plan& plan) {
  return fmt::format("{} ({} parameters) on {}, {} a step, {}; {}", plan.model.name,
                     parameters_text(static_cast<double>(model_parameter_count(plan.model))),
                     devices_text(plan.cluster), batch_text(plan), precision_name(plan.training.precision),
                     stack_text(plan.training));
}

std::string losers_text(const PlannedSettings& planned) {
  return (planned.settings.back().search.stopped_at ? stopped_text(planned) : counts_text(planned)) +
         headroom_text(planned);
}

std::string next_text(const Plan& best, const std::string& file) {
  const std::string plan = file.empty() ? "plan.json" : file;
  const std::string target =
      best.training.stack && !best.model.graph ? target_of_stack(best.training.stack->name) : std::string();
  const std::string hands_on = best.training.stack ? fmt::format("plumb export {} --to {}", plan, target)
                                                   : fmt::format("plumb validate {}", plan);
  return fmt::format("next: {}plumb simulate {}{}", file.empty() ? "give -o plan.json, then " : "", plan,
                     best.training.stack && target.empty() ? "" : ", " + hands_on);
}

std::string plan_text(const PlannedSettings& planned, const Plan& best, const std::string& file) {
  const Evaluation& fastest = evaluation_of(planned, planned.rows.front());
  std::string text = plan_verdict(best) + "\n" + question_text(best) + "\n" + interval_text(best, fastest.simulation) +
                     "\n" + "\n" + to_text(ranking_table(planned)) + "\n" + rows_within_text(planned, best) +
                     losers_text(planned) + "\n";
  for (const std::string& note : notes_of(fastest)) text += "note on the best: " + note + "\n";
  return text + "the best for --layout: " + keys_text(best.layout) + "\n" + next_text(best, file) + "\n";
}

std::string explanation_text(const PlannedQuestion& planned) {
  const SearchResult& search = planned.search;
  std::string text = variants_text(search);
  if (!search.other_values.empty()) text += other_values_text(planned.pricing, search);
  if (!search.losers.empty()) text += "\nthe other layouts:\n";
  for (const Rejection& loser : search.losers) text += fmt::format("  {}: {}\n", to_text(loser.layout), loser.reason);
  return text + conflicts_text(search.conflicts);
}

}}  // namespace plumb::tools
