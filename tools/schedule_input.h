#pragma once
// A schedule as the command line names it: a name of the catalogue with numbers, or a file by its ending.

#include "schedules/schedule.h"
#include "tools/verbs/verbs.h"

namespace plumb {

/// True for what is meant as a file: it ends in .txt or .csv, or has a '/'.
bool names_schedule_file(const std::string& name);

/// The file's schedule, not validated; notes go to stderr. Throws InputError with the place of what cannot be read, or
/// for an ending other than .txt and .csv.
Schedule read_schedule(const std::string& path);

/// Made or read, and valid. Throws ScheduleError with file, place and rule where it is not, and for missing numbers.
Schedule schedule_input(const ScheduleArguments& arguments);

/// Text or PyTorch's CSV, as the ending says.
std::string schedule_file_text(const Schedule& schedule, const std::string& path);

}  // namespace plumb
