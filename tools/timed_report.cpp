#include "tools/timed_report.h"

#include <fmt/format.h>

#include "planner/score/measured_ops.h"
#include "schedules/error.h"
#include "tools/table.h"

namespace plumb {
namespace {

constexpr int kInterleavedChunks = 3;  // of the runs that do not print theirs: Qi et al. 2024, with 22 to 46 layers

std::vector<MeasuredRun> timed_runs(const PublishedRows& published) {
  std::vector<MeasuredRun> runs;
  for (std::size_t i = 0; i < published.rows.size(); ++i) {
    try {
      const std::string place = fmt::format("{}: rows[{}]", published.file, i);
      MeasuredRunReading reading = measured_run(published.rows[i], place, kInterleavedChunks);
      if (reading.run) runs.push_back(std::move(*reading.run));
    } catch (const SpecError&) {
      continue;  // a faulty row is skipped, and says why, among the whole runs
    }
  }
  return runs;
}

std::vector<MeasuredRun> every_second(const std::vector<MeasuredRun>& runs, std::size_t first) {
  std::vector<MeasuredRun> half;
  for (std::size_t i = first; i < runs.size(); i += 2) half.push_back(runs[i]);
  return half;
}

ErrorStatistics errors_of(const std::vector<MeasuredRun>& runs, Seconds overhead) {
  std::vector<double> per_cent = step_time_errors(runs, overhead);
  for (double& error : per_cent) error *= 100;
  return error_statistics(per_cent);
}

const std::vector<std::string> kHead = {"timed operations of",   "runs",   "no constant", "worst",
                                        "overhead of an action", "unseen", "worst"};

std::vector<std::string> cells(const TimedScore& score, int half) {
  return {score.file,
          std::to_string(score.unfitted.count),
          fmt::format("{:.1f} %", score.unfitted.mean_pct),
          fmt::format("{:.1f} %", score.unfitted.worst_pct),
          fmt::format("{:.0f} us", score.overhead[half].count() * 1e6),
          fmt::format("{:.1f} %", score.unseen[half].mean_pct),
          fmt::format("{:.1f} %", score.unseen[half].worst_pct)};
}

}  // namespace

std::vector<TimedScore> timed_scores(const std::vector<PublishedRows>& files) {
  constexpr std::size_t kEnough = 4;
  std::vector<TimedScore> scores;
  for (const PublishedRows& published : files) {
    const std::vector<MeasuredRun> runs = timed_runs(published);
    if (runs.size() < kEnough) continue;
    TimedScore score{.file = published.file, .unfitted = errors_of(runs, Seconds{0})};
    for (std::size_t half = 0; half < 2; ++half) {
      score.overhead[half] = fitted_action_overhead(every_second(runs, half));
      score.unseen[half] = errors_of(every_second(runs, 1 - half), score.overhead[half]);
    }
    scores.push_back(std::move(score));
  }
  return scores;
}

std::string timed_text(const std::vector<TimedScore>& scores) {
  if (scores.empty()) return "";
  TextTable table{.head = kHead};
  for (const TimedScore& score : scores) {
    for (const int half : {0, 1}) table.rows.push_back(cells(score, half));
  }
  return "\n" + to_text(table);
}

std::string timed_page(const std::vector<TimedScore>& scores) {
  if (scores.empty()) return "";
  std::string page =
      "\n## Steps from timed operations\n\nThe runs print how long their operations took: schedules and simulation "
      "are judged alone, without a model of hardware. One overhead of each issued action is fitted on every second "
      "run and judged on the others, both ways round.\n\n|";
  for (const std::string& head : kHead) page += " " + head + " |";
  page += "\n|";
  for (std::size_t column = 0; column < kHead.size(); ++column) page += " --- |";
  page += "\n";
  for (const TimedScore& score : scores) {
    for (const int half : {0, 1}) {
      page += "|";
      for (const std::string& cell : cells(score, half)) page += " " + cell + " |";
      page += "\n";
    }
  }
  return page;
}

}  // namespace plumb
