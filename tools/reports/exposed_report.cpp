#include "tools/reports/exposed_report.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

using Entries = std::vector<std::pair<std::string, SimTime>>;

/// Returns the time of each cause that is communication.
Entries communication_of(const ExposedTime& time) {
  Entries entries;
  for (int group = 0; group < kGroupCount; ++group) {
    entries.emplace_back(group_name(static_cast<Group>(group)), time.collectives[static_cast<std::size_t>(group)]);
  }
  entries.emplace_back("messages", time.messages);
  entries.emplace_back("gathers", time.gathers);
  entries.emplace_back("reductions", time.reductions);
  entries.emplace_back("moves", time.moves);
  return entries;
}

SimTime sum_of(const Entries& entries) {
  SimTime sum{0};
  for (const auto& [cause, time] : entries) sum += time;
  return sum;
}

}  // namespace

nlohmann::ordered_json exposed_json(const ExposedTime& time) {
  nlohmann::ordered_json json{{"computing_s", to_seconds(time.computing).count()}};
  for (const auto& [cause, of] : communication_of(time)) json[cause + "_s"] = to_seconds(of).count();
  json["waiting_s"] = to_seconds(time.waiting).count();
  return json;
}

bool has_communication(const std::vector<ExposedTime>& ranks) {
  return std::ranges::any_of(ranks,
                             [](const ExposedTime& time) { return sum_of(communication_of(time)) > SimTime{0}; });
}

std::string exposed_text(const std::vector<ExposedTime>& ranks, const std::vector<ExposedTime>& on_path,
                         const std::function<std::string(SimTime)>& time) {
  TextTable table{.head = {"rank", "computing"}};
  std::vector<Entries> entries;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    table.rows.push_back({std::to_string(r), time(ranks[r].computing)});
    entries.push_back(communication_of(ranks[r]));
  }
  for (std::size_t cause = 0; cause < entries.front().size(); ++cause) {
    if (std::ranges::all_of(entries, [cause](const Entries& of) { return of[cause].second == SimTime{0}; })) continue;
    table.head.push_back(entries.front()[cause].first);
    for (std::size_t r = 0; r < ranks.size(); ++r) table.rows[r].push_back(time(entries[r][cause].second));
  }
  table.head.emplace_back("waiting");
  for (std::size_t r = 0; r < ranks.size(); ++r) table.rows[r].push_back(time(ranks[r].waiting));
  if (!on_path.empty()) {
    table.head.emplace_back("communication on the critical path");
    for (std::size_t r = 0; r < ranks.size(); ++r) table.rows[r].push_back(time(sum_of(communication_of(on_path[r]))));
  }
  return "where each rank's time goes, communication as far as nothing hides it:\n" + to_text(table);
}

}}  // namespace plumb::tools
