#pragma once
// Published runs whose operations were timed, held against what simulation alone makes of these times, for a person to
// read.

#include <string>
#include <vector>

#include "planner/score/error_statistics.h"
#include "planner/score/score.h"
#include "schedules/time.h"

namespace plumb {

/// One file's runs. The overhead of an action is fitted on every second run and judged on the others, both ways round.
struct TimedScore {
  std::string file;
  ErrorStatistics unfitted;     ///< of all runs, with no overhead
  Seconds overhead[2]{};        ///< fitted on the half
  ErrorStatistics unseen[2]{};  ///< of the other half with that overhead
};

/// The files that have four runs with timed operations or more.
std::vector<TimedScore> timed_scores(const std::vector<PublishedRows>& files);

/// A table for a terminal, and a section of Markdown; empty where there are no scores.
std::string timed_text(const std::vector<TimedScore>& scores);
std::string timed_page(const std::vector<TimedScore>& scores);

}  // namespace plumb
