#include "tools/reports/idle_report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tools/reports/table.h"

namespace plumb { inline namespace tools {

nlohmann::ordered_json idle_json(const IdleByCause& idle) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (int i = 0; i < kIdleCauseCount; ++i) {
    std::string key(idle_cause_name(static_cast<IdleCause>(i)));
    std::ranges::replace_if(
        key, [](char c) { return c == '-' || c == ' '; }, '_');
    json[key + "_s"] = to_seconds(idle[static_cast<std::size_t>(i)]).count();
  }
  return json;
}

std::string idle_text(const std::vector<IdleByCause>& ranks, const std::function<std::string(SimTime)>& time) {
  TextTable table{.head = {"rank"}};
  for (std::size_t r = 0; r < ranks.size(); ++r) table.rows.push_back({std::to_string(r)});
  for (int i = 0; i < kIdleCauseCount; ++i) {
    const auto cause = static_cast<std::size_t>(i);
    if (std::ranges::all_of(ranks, [cause](const IdleByCause& idle) { return idle[cause] == SimTime{0}; })) continue;
    table.head.emplace_back(idle_cause_name(static_cast<IdleCause>(i)));
    for (std::size_t r = 0; r < ranks.size(); ++r) table.rows[r].push_back(time(ranks[r][cause]));
  }
  return table.head.size() == 1 ? "" : "why ranks idle:\n" + to_text(table);
}

}}  // namespace plumb::tools
