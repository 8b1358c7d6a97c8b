#pragma once
// Published runs whose operations were timed (score/measured_ops.h), file by file: what simulation alone makes of these
// times, and with one overhead of an action that is fitted on every second run and judged on the others, both ways
// round.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/score/error_statistics.h"
#include "planner/score/score.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct TimedHalf {
  Seconds overhead{0};     ///< fitted on this half
  ErrorStatistics unseen;  ///< of the other half with that overhead
};

struct TimedScore {
  std::string file;
  ErrorStatistics unfitted;  ///< of all runs, with no overhead
  TimedHalf halves[2];
};

/// The files that have four such runs or more. Rows are read as their source's mapping reads them; one of its rules
/// fills `timed_chunks`, the chunks of an interleaved run that prints no number of them. A faulty row is left out
/// (among the whole runs it is skipped with its reason).
std::vector<TimedScore> timed_scores(const std::vector<SourceMapping>& mappings,
                                     const std::vector<PublishedRows>& files);

/// [{"file", "runs", "no_constant": {"mape_pct", "max_pct"}, "halves": [{"overhead_us", "mape_pct", "max_pct"}]}]
nlohmann::ordered_json to_json(const std::vector<TimedScore>& scores);

}}  // namespace plumb::planner
