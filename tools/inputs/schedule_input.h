#pragma once
// The command line gives a schedule by a name of the catalogue with numbers, or by a file, whose ending tells its form.

#include "schedules/cost_table.h"
#include "schedules/generators/catalogue.h"
#include "schedules/schedule.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// Returns true if the name means a file: it has the ending of a known kind of file, such as .txt, .csv or .json, or a
/// '/'.
bool names_schedule_file(const std::string& name);

/// Returns the file's schedule without validating it; notes go to stderr. Throws InputError with the place if the file
/// cannot be read, or if its ending is none of a schedule.
Schedule read_schedule(const std::string& path, bool lenient = false);

/// Returns the schedule, generated or read; one that is read is not validated. `costs` are those that a schedule which
/// depends on costs is generated for. Throws UsageError if numbers are missing, or are given although a file has its
/// own.
Schedule unchecked_input(const ScheduleArguments& arguments, const ChunkCosts& costs = {});

/// Throws UsageError if numbers of a schedule were given, since a file has its own.
void refuse_numbers(const ScheduleArguments& arguments);

/// Throws UsageError if --lenient was given for something else than PyTorch's CSV.
void refuse_lenient(const ScheduleArguments& arguments);

/// Returns the parameters of a schedule that is generated. Throws UsageError if ranks or micro-batches are missing.
ScheduleParameters parameters_of(const ScheduleArguments& arguments, const ChunkCosts& costs);

/// Returns the kind of sends that is named "buffered", "rendezvous" or "blocking".
Sends sends_named(const std::string& name);

/// Returns the schedule, generated or read, and valid. Throws ScheduleError with file, place and rule if it is not
/// valid, and as unchecked_input.
Schedule schedule_input(const ScheduleArguments& arguments, const ChunkCosts& costs = {});

/// Returns true if an option was given that only a schedule with messages can use.
bool adds_messages(const ScheduleArguments& arguments);

/// Returns the compute order, with recomputation and offloading if they are asked for. Throws UsageError if an option
/// was given that only messages can use, and ScheduleError if nothing can be recomputed.
Schedule ordered_input(const Schedule& schedule, const ScheduleArguments& arguments);

/// Returns the schedule with messages, optimizer steps, recomputation, offloading and sharding, or as PyTorch lowers
/// it. A schedule that has messages already is returned unchanged; throws ScheduleError if a change of it was asked
/// for.
Schedule lowered_input(const Schedule& schedule, const ScheduleArguments& arguments);

/// Returns the title with "vertical sync" if that was asked for, and with the default values of the numbers that the
/// schedule takes and that were not given.
std::string titled(std::string title, const ScheduleArguments& arguments);

/// Returns the schedule as text, PyTorch's CSV or JSON, as the ending of `path` says. Throws InputError for another
/// ending.
std::string schedule_file_text(const Schedule& schedule, const std::string& path);

}}  // namespace plumb::tools
