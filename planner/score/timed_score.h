#pragma once
// Published runs whose operations were timed (score/measured_ops.h), file by file: the errors of simulation alone on
// these times, and with one overhead of an action that is fitted on every second run and judged on the others, both
// ways round.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/score/error_statistics.h"
#include "planner/score/score.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct TimedHalf {
  Seconds overhead{0};     ///< fitted on this half
  ErrorStatistics unseen;  ///< errors on the other half with that overhead
};

struct TimedScore {
  std::string file;
  ErrorStatistics unfitted;  ///< errors on all runs without overhead
  TimedHalf halves[2];
};

/// Returns the scores of the files that have four such runs or more. Rows are read by their source's mapping, one of
/// whose rules fills `timed_chunks`: the chunks of an interleaved run that prints no number of them. A faulty row is
/// left out (score_rows skips it with its reason).
std::vector<TimedScore> timed_scores(const std::vector<SourceMapping>& mappings,
                                     const std::vector<PublishedRows>& files);

/// The JSON form is [{"file", "runs", "no_constant": {"mape_pct", "max_pct"}, "halves": [{"overhead_us", "mape_pct",
/// "max_pct"}]}].
nlohmann::ordered_json to_json(const std::vector<TimedScore>& scores);

}}  // namespace plumb::planner
