#include "planner/search/whatif.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/forms/json_text.h"
#include "tools/inputs/plan_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

std::string value_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : json_line(value);
}

/// Returns a table with a line for each row; numbers have their unit, or none in a CSV (`bare`).
TextTable table_of(const std::vector<WhatIfRow>& rows, bool bare) {
  TextTable table;
  for (const auto& [key, value] : rows.front().values) table.head.push_back(key);
  for (const char* column :
       {"layout", "step time", "four of five within", "MFU", "bubble", "tokens/s", "peak memory", "infeasible"}) {
    if (!bare || std::string_view(column) != "four of five within") table.head.emplace_back(column);
  }
  if (bare) {
    const std::size_t first = table.head.size() - 6;
    for (std::size_t i = 0;
         const char* column : {"step_time_s", "mfu", "bubble_ratio", "tokens_per_s", "peak_memory_bytes"}) {
      table.head[first + i++] = column;
    }
  }
  for (const WhatIfRow& row : rows) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const auto& [key, value] : row.values) cells.push_back(value_text(value));
    cells.push_back(to_text(row.layout));
    if (!row.prediction) {
      cells.insert(cells.end(), bare ? 5 : 6, bare ? "" : "-");
    } else {
      const auto& [step, rates, intervals] = *row.prediction;
      const std::int64_t peak = *std::ranges::max_element(step.peak_memory_bytes);
      const double seconds = step_time(step).count();
      const auto number = [&](double value, const std::string& text) {
        return bare ? fmt::format("{:.9g}", value) : text;
      };
      cells.push_back(number(seconds, duration_text(seconds)));
      if (!bare) {
        cells.push_back(
            fmt::format("{} to {}", duration_text(intervals->step_time.low), duration_text(intervals->step_time.high)));
      }
      cells.push_back(number(rates.mfu_ratio, fmt::format("{:.1f} %", 100 * rates.mfu_ratio)));
      cells.push_back(number(step.bubble_ratio, fmt::format("{:.1f} %", 100 * step.bubble_ratio)));
      const bool in_tokens = rates.tokens_per_second > 0;
      const double rate = in_tokens ? rates.tokens_per_second : rates.samples_per_second;
      cells.push_back(number(rate, fmt::format("{:.0f}{}", rate, in_tokens ? "" : " samples/s")));
      cells.push_back(bare ? std::to_string(peak) : bytes_text(static_cast<double>(peak)));
    }
    cells.push_back(row.infeasible);
  }
  return table;
}

ordered_json rows_json(const std::vector<WhatIfRow>& rows) {
  ordered_json list = ordered_json::array();
  for (const WhatIfRow& row : rows) {
    ordered_json values = ordered_json::object();
    for (const auto& [key, value] : row.values) values[key] = value;
    list.push_back({{"values", values},
                    {"layout", to_json(row.layout)},
                    {"prediction", row.prediction ? to_json(*row.prediction) : ordered_json(nullptr)},
                    {"infeasible", row.infeasible.empty() ? ordered_json(nullptr) : ordered_json(row.infeasible)}});
  }
  return {{"rows", list}};
}

/// Returns true if all rows that differ in that key alone have the same answer.
bool changes_nothing(const std::vector<WhatIfRow>& rows, std::size_t key) {
  std::map<std::string, std::vector<const WhatIfRow*>> alike;
  for (const WhatIfRow& row : rows) {
    std::string others;
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      if (i != key) others += json_line(row.values[i].second) + "\n";
    }
    alike[others].push_back(&row);
  }
  return std::ranges::all_of(alike, [](const auto& entry) {
    return std::ranges::all_of(entry.second, [&](const WhatIfRow* row) {
      const WhatIfRow& first = *entry.second.front();
      return row->prediction == first.prediction && row->infeasible == first.infeasible;
    });
  });
}

void note_idle_keys(const std::vector<WhatIfRow>& rows) {
  for (std::size_t key = 0; key < rows.front().values.size(); ++key) {
    const std::string& name = rows.front().values[key].first;
    if (rows.front().values[key].second != rows.back().values[key].second && changes_nothing(rows, key))
      print_note(fmt::format("{} changes nothing here: the answer is the same for each of its values", name));
  }
}

}  // namespace

int whatif_verb(const WhatifArguments& arguments) {
  if (!arguments.csv.empty()) require_writable(arguments.csv);
  const Plan plan = plan_input(arguments.plan);
  std::vector<Variation> variations;
  for (const std::string& text : arguments.vary)
    variations.push_back(read_option([&] { return parse_variation(text); }));
  const std::vector<WhatIfRow> rows = read_option([&] {
    return whatif(plan, variations,
                  {.replan = arguments.replan,
                   .intervals = [](const Plan& of, const StepSums& predicted) { return intervals_of(of, predicted); }});
  });
  if (arguments.json) {
    ordered_json answer = rows_json(rows);
    add_stack(answer, plan.training);
    print_answer(json_answer(answer));
  } else {
    print_answer(fmt::format("{} on {}, {}\n\n", plan.model.name, plan.cluster.name, stack_text(plan.training)) +
                 to_text(table_of(rows, false)));
  }
  if (!arguments.csv.empty()) {
    write_file(arguments.csv, to_csv(table_of(rows, true)));
    print_note(fmt::format("wrote {}", arguments.csv));
  }
  note_idle_keys(rows);
  const auto feasible = std::ranges::count_if(rows, [](const WhatIfRow& row) { return row.infeasible.empty(); });
  if (feasible < std::ssize(rows) && !arguments.replan && !plan.order) {
    print_note("each row kept the plan's layout and split: --replan searches the best layout of each row anew");
  }
  return feasible > 0 ? kDone : kInfeasible;
}

}}  // namespace plumb::tools
