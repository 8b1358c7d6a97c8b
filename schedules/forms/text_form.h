#pragma once
// The text form has a row for each rank, with its actions separated by blanks. Tests are written in it, and files that
// end in .txt.
//
//   0F0 0F1 0B0 0B1
//   1F0 1B0 1F1 1B1
//
// Lines that begin with '#' are comments; blank lines are skipped. Header lines stand ahead of the rows, each only
// where its value differs from what the rows imply:
//
//   name: my schedule
//   weights: stashed                  (current, stashed, vertical_sync, two_buffered)
//   microbatches: 4
//   stages: 0/0/0 1/1/0 1/2/0         (rank/model part/lane of stage 0, 1, ...)
//
// An action and its overlapped partner are written with '&' between them: 0F3&7B1.

#include <string>
#include <string_view>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Throws ScheduleError with file, line and column of the first token that is not an action.
Schedule parse_schedule(std::string_view text, const std::string& file = "schedule");

/// parse_schedule(to_text(s)) == s holds for every schedule.
std::string to_text(const Schedule& schedule);

/// Returns one rank's row, without newline: "0F0 0F1 0B0", or "-" for a rank without actions.
std::string row_text(const std::vector<Action>& actions);

/// Returns the actions of a row. Throws ScheduleError "PLACE, column N: ..." for the first token that is not an action.
std::vector<Action> parse_row(std::string_view row, const std::string& place);

}}  // namespace plumb::schedules
