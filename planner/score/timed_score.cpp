#include "planner/score/timed_score.h"

#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/score/measured_ops.h"
#include "planner/score/source_mapping.h"
#include "schedules/error.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::ordered_json;

std::optional<MeasuredRun> timed_run(const std::vector<SourceMapping>& mappings, const PublishedRows& published,
                                     std::size_t index) {
  nlohmann::json row = published.rows[index];
  row = *read_by_all(mappings, mapping_for(mappings, row), row).row;
  const auto chunks = row.find("timed_chunks");
  try {
    return measured_run(row, fmt::format("{}: rows[{}]", published.file, index),
                        chunks != row.end() && chunks->is_number_integer() ? chunks->get<int>() : 1)
        .run;
  } catch (const SpecError&) {
    return std::nullopt;
  }
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

}  // namespace

std::vector<TimedScore> timed_scores(const std::vector<SourceMapping>& mappings,
                                     const std::vector<PublishedRows>& files) {
  constexpr std::size_t kEnough = 4;  // two on each side
  std::vector<TimedScore> scores;
  for (const PublishedRows& published : files) {
    std::vector<MeasuredRun> runs;
    for (std::size_t i = 0; i < published.rows.size(); ++i) {
      if (std::optional<MeasuredRun> run = timed_run(mappings, published, i)) runs.push_back(std::move(*run));
    }
    if (runs.size() < kEnough) continue;
    TimedScore score{.file = published.file, .unfitted = errors_of(runs, Seconds{0})};
    for (std::size_t half = 0; half < 2; ++half) {
      const Seconds overhead = fitted_action_overhead(every_second(runs, half));
      score.halves[half] = {.overhead = overhead, .unseen = errors_of(every_second(runs, 1 - half), overhead)};
    }
    scores.push_back(std::move(score));
  }
  return scores;
}

ordered_json to_json(const std::vector<TimedScore>& scores) {
  ordered_json list = ordered_json::array();
  for (const TimedScore& score : scores) {
    ordered_json entry{{"file", score.file},
                       {"runs", score.unfitted.count},
                       {"no_constant", {{"mape_pct", score.unfitted.mean_pct}, {"max_pct", score.unfitted.worst_pct}}}};
    for (const TimedHalf& half : score.halves) {
      entry["halves"].push_back({{"overhead_us", half.overhead.count() / kMicro},
                                 {"mape_pct", half.unseen.mean_pct},
                                 {"max_pct", half.unseen.worst_pct}});
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}}  // namespace plumb::planner
