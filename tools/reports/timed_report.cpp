#include "tools/reports/timed_report.h"

#include <fmt/format.h>

#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

const std::vector<std::string> kTimedHead = {"timed operations of",   "runs",   "no constant", "worst",
                                             "overhead of an action", "unseen", "worst"};

std::vector<std::string> cells(const TimedScore& score, const TimedHalf& half) {
  return {score.file,
          std::to_string(score.unfitted.count),
          fmt::format("{:.1f} %", score.unfitted.mean_pct),
          fmt::format("{:.1f} %", score.unfitted.worst_pct),
          fmt::format("{:.0f} us", half.overhead.count() * 1e6),
          fmt::format("{:.1f} %", half.unseen.mean_pct),
          fmt::format("{:.1f} %", half.unseen.worst_pct)};
}

}  // namespace

std::string timed_text(const std::vector<TimedScore>& scores) {
  if (scores.empty()) return "";
  TextTable table{.head = kTimedHead};
  for (const TimedScore& score : scores) {
    for (const TimedHalf& half : score.halves) table.rows.push_back(cells(score, half));
  }
  return "\n" + to_text(table);
}

std::string timed_page(const std::vector<TimedScore>& scores) {
  if (scores.empty()) return "";
  std::string page =
      "\n## Steps from timed operations\n\nThe runs print how long their operations took: schedules and simulation "
      "are judged alone, without a model of hardware. One overhead of each issued action is fitted on every second "
      "run and judged on the others, both ways round.\n\n|";
  for (const std::string& head : kTimedHead) page += " " + head + " |";
  page += "\n|";
  for (std::size_t column = 0; column < kTimedHead.size(); ++column) page += " --- |";
  page += "\n";
  for (const TimedScore& score : scores) {
    for (const TimedHalf& half : score.halves) {
      page += "|";
      for (const std::string& cell : cells(score, half)) page += " " + cell + " |";
      page += "\n";
    }
  }
  return page;
}

}}  // namespace plumb::tools
