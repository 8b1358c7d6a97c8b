#include "tools/reports/ranking_report.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/spec/short_layout.h"
#include "tools/reports/alternatives_report.h"

namespace plumb { inline namespace tools {
namespace {

/// A column, and its cell in each row.
struct Column {
  std::string head;
  std::function<std::string(const PlannedQuestion&, const SettingRow&)> cell;
};

std::string stack_name(const PlannedQuestion& setting, const Evaluation& row) {
  const StackSpec* stack = setting.pricing.stack_of(row.layout);
  return stack == nullptr ? std::string(kOwnExecutor) : stack->name;
}

/// Tokens or samples of a step.
double trained(const Pricing& pricing) {
  const TrainingSpec& training = pricing.training();
  return static_cast<double>(has_sequence(pricing.model()) ? tokens_per_step(training) : training.global_batch);
}

const Evaluation& evaluation_of(const PlannedQuestion& setting, const SettingRow& row) {
  return setting.search.ranked[row.row];
}

/// Returns the columns of a step, and those in which some rows differ.
std::vector<Column> columns(const PlannedSettings& planned) {
  const bool sequences = has_sequence(planned.settings.front().pricing.model());
  const std::string unit = sequences ? "tokens" : "samples";
  std::vector<Column> all;
  const auto add = [&](std::string head, auto cell) { all.push_back({std::move(head), cell}); };
  const auto add_if_they_differ = [&](std::string head, auto cell) {
    const auto text = [&](const SettingRow& row) { return cell(planned.settings[row.setting], row); };
    const std::string first = text(planned.rows.front());
    if (!std::ranges::all_of(planned.rows, [&](const SettingRow& row) { return text(row) == first; }))
      all.push_back({std::move(head), cell});
  };
  add_if_they_differ("cluster", [](const PlannedQuestion& s, const SettingRow&) { return s.pricing.cluster().name; });
  add_if_they_differ("devices", [](const PlannedQuestion& s, const SettingRow&) {
    return std::to_string(s.pricing.cluster().devices);
  });
  add_if_they_differ("precision", [](const PlannedQuestion& s, const SettingRow&) {
    return std::string(precision_name(s.pricing.training().precision));
  });
  add_if_they_differ("optimizer", [](const PlannedQuestion& s, const SettingRow&) {
    return std::string(optimizer_name(s.pricing.training().optimizer));
  });
  add("layout",
      [](const PlannedQuestion& s, const SettingRow& row) { return short_text(evaluation_of(s, row).layout); });
  if (planned.goal == Goal::kCost)
    add(unit + "/$", [](const PlannedQuestion& s, const SettingRow& row) {
      return fmt::format("{:.4g}", trained(s.pricing) / row.value);
    });
  if (planned.goal == Goal::kEnergy)
    add(unit + "/J", [](const PlannedQuestion& s, const SettingRow& row) {
      return fmt::format("{:.4g}", trained(s.pricing) / row.value);
    });
  if (planned.goal == Goal::kRobust)
    add("p95", [](const PlannedQuestion&, const SettingRow& row) { return duration_text(row.value); });
  add("step", [](const PlannedQuestion& s, const SettingRow& row) {
    return duration_text(step_time(evaluation_of(s, row).simulation).count());
  });
  const SettingRow& best = planned.rows.front();
  add("to best", [best](const PlannedQuestion&, const SettingRow& row) {
    return row.value == best.value ? std::string() : fmt::format("{:+.1f} %", 100 * (row.value / best.value - 1));
  });
  if (planned.settings.size() > 1) {
    add("MFU", [](const PlannedQuestion& s, const SettingRow& row) {
      return fmt::format("{:.1f} %", 100 * evaluation_of(s, row).rates.mfu_ratio);
    });
    add(unit + "/s", [sequences](const PlannedQuestion& s, const SettingRow& row) {
      const StepRates& rates = evaluation_of(s, row).rates;
      return fmt::format("{:.0f}", sequences ? rates.tokens_per_second : rates.samples_per_second);
    });
  }
  add("memory", [](const PlannedQuestion& s, const SettingRow& row) {
    return bytes_text(static_cast<double>(std::ranges::max(evaluation_of(s, row).simulation.peak_memory_bytes)));
  });
  add_if_they_differ(
      "stack", [](const PlannedQuestion& s, const SettingRow& row) { return stack_name(s, evaluation_of(s, row)); });
  add("mostly by", [&planned, best](const PlannedQuestion& s, const SettingRow& row) {
    const PlannedQuestion& of_best = planned.settings[best.setting];
    return growth_text(of_best, evaluation_of(of_best, best), s, evaluation_of(s, row));
  });
  add("variants", [](const PlannedQuestion& s, const SettingRow& row) {
    const std::size_t count = s.search.variants[row.row].size();
    return count == 0 ? "" : std::to_string(count);
  });
  return all;
}

}  // namespace

TextTable ranking_table(const PlannedSettings& planned) {
  TextTable table{.head = {""}};
  const std::vector<Column> shown = columns(planned);
  for (const Column& column : shown) table.head.push_back(column.head);
  for (const SettingRow& row : planned.rows) {
    table.rows.push_back({std::to_string(table.rows.size() + 1)});
    for (const Column& column : shown) table.rows.back().push_back(column.cell(planned.settings[row.setting], row));
  }
  return table;
}

nlohmann::ordered_json goal_json(const PlannedSettings& planned, const SettingRow& row) {
  const Pricing& pricing = planned.settings[row.setting].pricing;
  const std::string unit = has_sequence(pricing.model()) ? "tokens" : "samples";
  if (planned.goal == Goal::kCost) return {{unit + "_per_usd", trained(pricing) / row.value}};
  if (planned.goal == Goal::kEnergy) return {{unit + "_per_joule", trained(pricing) / row.value}};
  if (planned.goal == Goal::kRobust) return {{"step_time_p95_s", row.value}};
  return nullptr;
}

}}  // namespace plumb::tools
