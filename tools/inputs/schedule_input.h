#pragma once
// A schedule as the command line names it: a name of the catalogue with numbers, or a file by its ending.

#include "schedules/cost_table.h"
#include "schedules/generators/catalogue.h"
#include "schedules/schedule.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// True for what is meant as a file: it ends in .txt, .csv or .json, or has a '/'.
bool names_schedule_file(const std::string& name);

/// The file's schedule, not validated; notes go to stderr. Throws InputError with the place of what cannot be read, or
/// for another ending.
Schedule read_schedule(const std::string& path, bool lenient = false);

/// Made or read, not validated if it is read. `costs` are what a schedule that is made for costs is made for. Throws
/// UsageError for missing numbers, and for those that a file has itself.
Schedule unchecked_input(const ScheduleArguments& arguments, const ChunkCosts& costs = {});

/// The numbers of a schedule that is made. Throws UsageError for missing ones.
ScheduleParameters parameters_of(const ScheduleArguments& arguments, const ChunkCosts& costs);

/// "buffered", "rendezvous" or "blocking".
Sends sends_named(const std::string& name);

/// Made or read, and valid. Throws ScheduleError with file, place and rule where it is not, and as unchecked_input
/// does.
Schedule schedule_input(const ScheduleArguments& arguments, const ChunkCosts& costs = {});

/// True for options that only a schedule with messages has a use for.
bool adds_messages(const ScheduleArguments& arguments);

/// The compute order, with recomputation and offloading if they are asked for. Throws UsageError if what only messages
/// have is, ScheduleError if nothing can be recomputed.
Schedule ordered_input(const Schedule& schedule, const ScheduleArguments& arguments);

/// The schedule with messages, optimizer steps, recomputation, offloading and sharding, or as PyTorch lowers it; as it
/// is if it has messages already. Throws ScheduleError if it then cannot be changed as asked.
Schedule lowered_input(const Schedule& schedule, const ScheduleArguments& arguments);

/// The title of a schedule, with what it does not say itself, and with the numbers that were not given and make another
/// schedule if they are.
std::string titled(std::string title, const ScheduleArguments& arguments);

/// Text, PyTorch's CSV or JSON, as the ending says.
std::string schedule_file_text(const Schedule& schedule, const std::string& path);

}}  // namespace plumb::tools
